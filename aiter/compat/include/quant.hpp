// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The numbers of qscale_type, by Composable Kernel's names.
#pragma once

enum class quant_scale_enum {
  no_scale = 0,
  pertensor = 1,
  blockscale = 2,
  kv_blockscale = 3,
};
