// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Recording a pick of CK's dispatchers, forward or backward.
#pragma once

#include "aiter/dispatch_reference/ck_dispatch.h"

namespace aiter_attn::dispatch_reference {

// What all of CK's traits types have.
template <typename Traits>
CkInstance picked(bool bf16) {
  CkInstance instance = {};
  instance.picked = true;
  instance.bf16 = bf16;
  instance.group_mode = Traits::kIsGroupMode;
  instance.head_size_qk = Traits::HDim;
  instance.head_size_v = Traits::HDim;
  instance.pad_seqlen_q = Traits::kPadS;
  return instance;
}

}  // namespace aiter_attn::dispatch_reference
