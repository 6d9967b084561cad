// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "kernels/code_object/embedded_pack.h"

std::vector<AITER_ATTN_NAMESPACE::kernels::EmbeddedPack>
AITER_ATTN_NAMESPACE::kernels::embedded_packs() {
  return {};
}
