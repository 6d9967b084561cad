// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// aiter_attn._C.Problem.
#pragma once

#include <type_traits>

#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::python {

// A problem, and the options of its passes, which are known before there are arrays.
struct Problem {
  attn_problem problem{};
  attn_fwd_args fwd{};
  attn_bwd_args bwd{};

  // A pass's args without arrays.
  template <typename Args>
  Args ArgsOf() const {
    Args args{};
    if constexpr (std::is_same_v<Args, attn_fwd_args>) args = fwd;
    if constexpr (std::is_same_v<Args, attn_bwd_args>) args = bwd;
    if constexpr (std::is_same_v<Args, attn_kvcache_fwd_args>) args.min_seqlen_q = fwd.min_seqlen_q;
    args.struct_size = sizeof args;
    return args;
  }
};

}  // namespace AITER_ATTN_NAMESPACE::python
