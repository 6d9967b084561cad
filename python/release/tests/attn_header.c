/* Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
 *
 * A release's attn.h in a C program, alone. */
#include "python/release/tests/te/attn_h/attn.h"

#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)
const char* attn_symbol(void);
const char* attn_symbol(void) { return TEXT(attn_fwd); }
