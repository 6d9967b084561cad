// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The C ABI of the norms: reads and validates the caller's structs, and computes. Nothing is thrown
// from here.
#include "aiter/norm.h"
#include "aiter/norm/reference.h"
#include "aiter/norm/validate.h"
#include "aiter/runtime/call.h"
#include "aiter/status.h"

namespace AITER_ATTN_NAMESPACE::norm {
namespace {

template <typename Args>
attn_status run(const Args* args) {
  return c_status(runtime::guarded([&] { reference(validated(args)); }));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::norm

using AITER_ATTN_NAMESPACE::norm::run;

extern "C" {

attn_status attn_norm_fwd(const attn_norm_fwd_args* args) { return run(args); }

attn_status attn_norm_bwd(const attn_norm_bwd_args* args) { return run(args); }

attn_status attn_softmax_fwd(const attn_softmax_fwd_args* args) { return run(args); }

attn_status attn_softmax_bwd(const attn_softmax_bwd_args* args) { return run(args); }

}  // extern "C"
