// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Which weights dropout keeps: the random numbers of upstream's kernels. The generator is
// Philox4x32 with 7 rounds (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2,
// 3; SC 2011). Upstream (ck_tile/ops/fmha/block/block_dropout.hpp) gives each tile of 32 x 32
// weights a subsequence, in it each of 64 lanes a counter, and of the counter's 16 bytes one to
// each of the lane's weights.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::attention {

using Words = std::array<uint32_t, 4>;

inline Words philox4x32(Words counter, uint64_t seed, int rounds) {
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < rounds; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * counter[0];
    const uint64_t second = uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(second),
        static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(first)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// Of one head of one batch entry.
class Dropout {
 public:
  Dropout(const attn_problem& p, int64_t batch, int64_t head)
      : seed_(reads_state(p) ? p.rng_state[0] : p.dropout_seed),
        offset_((reads_state(p) ? p.rng_state[1] : p.dropout_offset) +
                static_cast<uint64_t>((batch * p.heads_q + head) * kLanes)),
        // In float32, as kernels compute it.
        threshold_(static_cast<uint32_t>(std::floor((1.0f - p.dropout_p) * 255.0f))),
        factor_(1 / (1 - double{p.dropout_p})),
        drops_(p.dropout_p > 0) {}

  bool drops() const { return drops_; }

  // The factor of a weight that stays.
  double factor() const { return factor_; }

  // Whether the weight of query i and key j stays.
  bool keeps(int64_t i, int64_t j) const { return !drops_ || byte(i, j) <= threshold_; }

 private:
  static constexpr int64_t kTile = 32, kLanes = 64;
  static constexpr int kRounds = 7;

  static bool reads_state(const attn_problem& p) { return p.dropout_p > 0 && p.rng_state; }

  uint32_t byte(int64_t i, int64_t j) const {
    const int64_t row = i % kTile;
    const uint64_t start = offset_ + static_cast<uint64_t>(row % 16 / 8 * 32 + j % kTile);
    const Words words =
        philox4x32({static_cast<uint32_t>(start), static_cast<uint32_t>(start >> 32),
                    static_cast<uint32_t>(i / kTile), static_cast<uint32_t>(j / kTile)},
                   seed_, kRounds);
    const int64_t which = row / 16 * 8 + row % 8;
    return words[which / 4] >> (which % 4 * 8) & 0xff;
  }

  const uint64_t seed_, offset_;
  const uint32_t threshold_;
  const double factor_;
  const bool drops_;
};

}  // namespace AITER_ATTN_NAMESPACE::attention
