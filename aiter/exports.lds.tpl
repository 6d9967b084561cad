/* Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
 *
 * The symbols that the shared library exports: ATTN_API functions, listed in functions.h. The
 * version keeps a program that is linked with this library from taking another's symbols. */
AITER_ATTN_1 {
  global:
    NAMESPACE_attn_*;
  local:
    *;
};
