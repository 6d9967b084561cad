// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// For ctypes: the structs of the C ABI and of the recording HIP, in this object's debug
// information; and the prefix of the library's functions.
#include "aiter/attn.h"
#include "aiter/norm.h"
#include "tests/support/runtime/recording_hip.h"

#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

extern "C" {

const char* abi_namespace() { return TEXT(AITER_ATTN_NAMESPACE); }

struct {
  attn_tensor tensor;
  attn_problem problem;
  attn_fwd_args fwd_args;
  attn_bwd_args bwd_args;
  attn_dropout_mask_args dropout_mask_args;
  attn_kvcache kvcache;
  attn_kvcache_fwd_args kvcache_fwd_args;
  attn_append_kv_args append_kv_args;
  attn_norm_problem norm_problem;
  attn_norm_fwd_args norm_fwd_args;
  attn_norm_bwd_args norm_bwd_args;
  attn_softmax_problem softmax_problem;
  attn_softmax_fwd_args softmax_fwd_args;
  attn_softmax_bwd_args softmax_bwd_args;
  RecordedCall recorded_call;
} abi_structs;
}
