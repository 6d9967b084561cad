/* Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
 *
 * Someone's own library that two copies of this one are linked into. */
int aiter_attn_fwd(const void* args);
int te_attn_fwd(const void* args);

int foreign(const void* args) { return aiter_attn_fwd(args) + te_attn_fwd(args); }
