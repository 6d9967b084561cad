// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Which of the project's own variant sets have which kernels, so that a build without one can name
// a set with it. The table is generated from the sets' files.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/launch_table/traits.h"

namespace AITER_ATTN_NAMESPACE::kernels {

// The traits that dispatch asks of a kernel, as in launch_table.h's Row; a tile is 0 where it does
// not matter. Kernels that serve no more than another of the same sets are left out.
struct PublishedKernel {
  Traits traits;
  uint16_t head_size_alignment;
  uint16_t tile_seqlen_q, tile_seqlen_k, tile_head_size_qk, tile_head_size_v;
  uint8_t sets;      // bit s: kPublishedSets[s] has it
  uint8_t left_out;  // bit a: but not for kArchs[a]
};

// From the set with the fewest kernels to that with the most.
extern const char* const kPublishedSets[];
extern const size_t kPublishedSetCount;

extern const PublishedKernel kPublishedKernels[];
extern const size_t kPublishedKernelCount;

}  // namespace AITER_ATTN_NAMESPACE::kernels
