// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Calls over key-value caches, whose structs all pins have alike.
#pragma once

#include <fmha_fwd.hpp>
#include <string>

namespace AITER_ATTN_NAMESPACE::compat {

// Arguments of the functions beside their structs.
struct CacheTraits {
  const std::string& dtype;
  bool group;
  mask_enum mask;
  bias_enum bias;
  bool lse;
};

// As answered(), of call.h.
float splitkv(const fmha_fwd_splitkv_args& args, const CacheTraits& traits,
              const ck_tile::stream_config& stream) noexcept;
float batch_prefill(const fmha_batch_prefill_args& args, const CacheTraits& traits,
                    quant_scale_enum scales, const ck_tile::stream_config& stream) noexcept;

}  // namespace AITER_ATTN_NAMESPACE::compat
