/* Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
 *
 * Someone's own library that exports all names of the C ABI. Whoever calls it ends. */
#include <stdio.h>
#include <stdlib.h>

#include "aiter/functions.h"

#define PASTE_(ns, name) ns##_attn_##name
#define PASTE(ns, name) PASTE_(ns, name)
#define ABORT(name)                                          \
  void PASTE(AITER_ATTN_NAMESPACE, name)(void) {             \
    fputs("the foreign attn_" #name " is called\n", stderr); \
    abort();                                                 \
  }

ATTN_FUNCTIONS(ABORT)
