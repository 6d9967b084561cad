// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// What the table's code objects point to: nothing of them is read.
extern "C" {
extern const unsigned char no_code[] __attribute__((visibility("hidden")));
const unsigned char no_code[] = {0};
}
