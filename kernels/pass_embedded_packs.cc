// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "kernels/code_object/embedded_pack.h"

namespace AITER_ATTN_NAMESPACE::kernels {

EmbeddedPack attention_pack();  // :fwd_pack or :bwd_pack

std::vector<EmbeddedPack> embedded_packs() { return {attention_pack()}; }

}  // namespace AITER_ATTN_NAMESPACE::kernels
