// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The numbers of mask_type, by Composable Kernel's names.
#pragma once

enum class mask_enum {
  no_mask = 0,
  mask_top_left = 1,
  mask_bottom_right = 2,
  window_generic = 3,
};
