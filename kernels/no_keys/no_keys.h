// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The arguments of the kernel that fills the outputs of sequences without keys, for the device and
// for the host that launches it.
//
// AITER's forward kernels leave these rows undefined where there is no mask. In group mode only the
// device knows the lengths, so this kernel is launched after them and looks at each sequence:
//
//   o    [total_q, heads, head_size]: 0 where the row's sequence has no keys, else as it was
//   lse  [heads, total_q], contiguous: minus infinity there
//
// o, its strides and its heads are multiples of 16 bytes.
#pragma once

#include <stdint.h>

// No function here has a symbol: libraries of two namespaces may hold them.
namespace no_keys {

struct Args {
  void* o;
  float* lse;                       // NULL: not wanted
  const int32_t* cu_seqlens_q;      // [batch + 1]
  const int32_t* cu_seqlens_k;      // likewise
  int64_t stride_seq, stride_head;  // of o, in elements
  int64_t total_q;
  uint32_t batch, heads, head_size;
  uint32_t workgroups;  // workgroups_for(...): the kernel asks for no hidden argument
};

constexpr uint32_t kBlockSize = 256;
// Elements that a work-item writes at a time: 16 bytes.
constexpr uint32_t kVector = 8;

// The grid {n, 1, 1}: a workgroup for each head of each sequence, up to where the device is full
// and workgroups take several.
static constexpr uint32_t workgroups_for(int64_t batch, int64_t heads) {
  constexpr int64_t kEnough = 65536;
  const int64_t wanted = batch * heads;
  return static_cast<uint32_t>(wanted < 1 ? 1 : wanted < kEnough ? wanted : kEnough);
}

}  // namespace no_keys
