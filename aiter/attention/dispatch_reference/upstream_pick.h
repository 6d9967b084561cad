// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Recording a pick of upstream's dispatchers, forward or backward.
#pragma once

#include "aiter/attention/dispatch_reference/upstream_dispatch.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_reference {

// What all of upstream's traits types have.
template <typename Traits>
UpstreamInstance picked(bool bf16) {
  UpstreamInstance instance = {};
  instance.picked = true;
  instance.bf16 = bf16;
  instance.group_mode = Traits::kIsGroupMode;
  instance.head_size_qk = Traits::HDim;
  instance.head_size_v = Traits::HDim;
  instance.pad_seqlen_q = Traits::kPadS;
  return instance;
}

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_reference
