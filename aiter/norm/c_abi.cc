// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The C ABI of the norms: has the caller's structs validated, and hands the call over to the CPU
// reference or to launch. Nothing is thrown from here.
#include "aiter/norm.h"
#include "aiter/norm/launch.h"
#include "aiter/norm/reference.h"
#include "aiter/norm/validate.h"
#include "aiter/runtime/call.h"
#include "aiter/status.h"

namespace AITER_ATTN_NAMESPACE::norm {
namespace {

template <typename Args>
attn_status run(const Args* args) {
  return c_status(runtime::guarded([&] {
    const auto call = validated(args);
    call.p.device_type == ATTN_DEVICE_CPU ? reference(call) : launch(call);
  }));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::norm

using AITER_ATTN_NAMESPACE::norm::run;

extern "C" {

attn_status attn_norm_fwd(const attn_norm_fwd_args* args) { return run(args); }

attn_status attn_norm_bwd(const attn_norm_bwd_args* args) { return run(args); }

attn_status attn_norm_bwd_workspace_size(const attn_norm_bwd_args* args, uint64_t* bytes) {
  using namespace AITER_ATTN_NAMESPACE;
  return c_status(runtime::guarded([&] {
    runtime::require_place(bytes, "bytes", "size");
    *bytes = 0;
    const norm::NormBackward call = norm::validated(args);
    if (call.p.device_type != ATTN_DEVICE_CPU) *bytes = norm::workspace_size(call);
  }));
}

attn_status attn_softmax_fwd(const attn_softmax_fwd_args* args) { return run(args); }

attn_status attn_softmax_bwd(const attn_softmax_bwd_args* args) { return run(args); }

}  // extern "C"
