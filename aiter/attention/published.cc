// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/published.h"

#include <cstddef>
#include <cstdint>

#include "kernels/archs/archs.h"
#include "kernels/published_sets/published_sets.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using kernels::Kind;
using kernels::kPublishedKernelCount;
using kernels::kPublishedKernels;
using kernels::kPublishedSetCount;
using kernels::kPublishedSets;
using kernels::PublishedKernel;
using kernels::Row;

Row row_of(const PublishedKernel& kernel) {
  Row row = {};
  row.traits = kernel.traits;
  row.head_size_alignment = kernel.head_size_alignment;
  row.tile_seqlen_q = kernel.tile_seqlen_q;
  row.tile_seqlen_k = kernel.tile_seqlen_k;
  row.tile_head_size_qk = kernel.tile_head_size_qk;
  row.tile_head_size_v = kernel.tile_head_size_v;
  return row;
}

// A bit for each set that has a kernel of the kind for the request.
uint32_t sets_with(Kind kind, const Request& request) {
  const kernels::ArchFacts* const arch = kernels::find_arch(request.arch);
  if (!arch) return 0;
  uint32_t sets = 0;
  bool is_chosen = false;
  for (size_t i = 0; i < kPublishedKernelCount; ++i) {
    const PublishedKernel& kernel = kPublishedKernels[i];
    if (kernel.traits.kind != kind) continue;
    is_chosen = true;
    if (kernel.left_out >> (arch - kernels::kArchs) & 1) continue;
    if (mismatch(row_of(kernel), request).reason == Mismatch::kNone) sets |= kernel.sets;
  }
  // Kernels that no set chooses are in every build.
  return is_chosen ? sets : ~uint32_t{0};
}

}  // namespace

std::string_view smallest_published_set(const Request& request, const Plan& plan) {
  uint32_t sets = ~uint32_t{0};
  for (const Step& step : plan) sets &= sets_with(step.kind, request);
  for (size_t i = 0; i < kPublishedSetCount; ++i) {
    if (sets >> i & 1) return kPublishedSets[i];
  }
  return {};
}

std::vector<std::string_view> archs_served_by_published_sets(Request request, const Plan& plan) {
  std::vector<std::string_view> archs;
  for (const kernels::ArchFacts& arch : kernels::kArchs) {
    request.arch = arch.name;
    if (!smallest_published_set(request, plan).empty()) archs.push_back(arch.name);
  }
  return archs;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
