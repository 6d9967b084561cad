/* Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
 *
 * A release's norm.h in a C program, alone. */
#include "python/release/tests/te/norm_h/norm.h"

#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)
const char* norm_symbol(void);
const char* norm_symbol(void) { return TEXT(attn_softmax_fwd); }
