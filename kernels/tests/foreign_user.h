// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* The first byte of the first file. */
int magic_of_first_file(void);

#ifdef __cplusplus
}
#endif
