// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/passes/kvcache/splits.h"

#include <algorithm>
#include <array>

#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

constexpr int64_t kWorkgroupsPerUnit = 2;  // that run on a compute unit at a time
constexpr double kFull = 0.8;
constexpr double kNearBest = 0.85;

}  // namespace

int32_t choose_splits(int64_t workgroups, int64_t tiles_of_keys, int32_t compute_units) {
  const int64_t slots = compute_units * kWorkgroupsPerUnit;
  if (workgroups >= kFull * static_cast<double>(slots)) return 1;
  const auto most = static_cast<int32_t>(
      std::clamp<int64_t>(std::min(tiles_of_keys, slots), 1, kernels::kMostSplits));
  // The part of the GPU that is busy, over all rounds of workgroups.
  std::array<double, kernels::kMostSplits + 1> busy = {};
  double best = 0;
  for (int32_t n = 1; n <= most; ++n) {
    const auto tiles_each = [&](int32_t splits) { return (tiles_of_keys + splits - 1) / splits; };
    // The longest part is no shorter than with one split less.
    if (n > 1 && tiles_each(n) == tiles_each(n - 1)) continue;
    const int64_t rounds = (workgroups * n + slots - 1) / slots;
    busy[n] = static_cast<double>(workgroups * n) / static_cast<double>(rounds * slots);
    best = std::max(best, busy[n]);
  }
  int32_t least = 1;
  while (busy[least] < kNearBest * best) ++least;
  return least;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
