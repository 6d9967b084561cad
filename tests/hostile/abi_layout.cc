// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// For ctypes: the structs of the C ABI and of the recording HIP, in this object's debug
// information; and the prefix of the library's functions.
#include "aiter/attn.h"
#include "aiter/testing/recording_hip.h"

#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

extern "C" {

const char* abi_namespace() { return TEXT(AITER_ATTN_NAMESPACE); }

struct {
  attn_tensor tensor;
  attn_problem problem;
  attn_fwd_args fwd_args;
  attn_bwd_args bwd_args;
  RecordedCall recorded_call;
} abi_structs;
}
