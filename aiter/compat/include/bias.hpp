// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The numbers of bias_type, by Composable Kernel's names.
#pragma once

enum class bias_enum {
  no_bias = 0,
  elementwise_bias = 1,
  alibi = 2,
};
