// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The device code of dropout_mask.h: the random numbers of upstream's kernels
// (ck_tile/ops/fmha/block/block_dropout.hpp). The generator is Philox4x32 with 7 rounds (Salmon,
// Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3; SC 2011). A tile of 32 x 32
// weights has a subsequence, each of its 64 lanes a counter in it, and of the counter's 16 bytes
// each of the lane's weights has one: lane l has those of key l % 32 and of the queries
// 8 * (l / 32) to 8 * (l / 32) + 7, and of the queries 16 further down.
#pragma once

#include <hip/hip_runtime.h>

#include "kernels/dropout_mask/dropout_mask.h"

namespace dropout_mask {

constexpr int kRounds = 7;

__device__ inline void philox4x32(uint32_t (&x)[4], uint64_t seed) {
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * x[0];
    const uint64_t second = uint64_t{0xCD9E8D57} * x[2];
    x[0] = static_cast<uint32_t>(second >> 32) ^ x[1] ^ key0;
    x[1] = static_cast<uint32_t>(second);
    x[2] = static_cast<uint32_t>(first >> 32) ^ x[3] ^ key1;
    x[3] = static_cast<uint32_t>(first);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
}

// One head of one batch entry.
struct Head {
  uint8_t* kept;     // of its first query
  uint32_t queries;  // that it has
  uint32_t keys;     // likewise; seqlen_k are written
  uint64_t offset;   // of its first lane
};

// The rows of a sequence that are not padding: those that it has, without numbers or sums of them.
__device__ inline uint32_t used_rows(const int32_t* starts, const int32_t* numbers,
                                     const int32_t* sums, uint64_t batch) {
  if (numbers) return numbers[batch];
  const int32_t* const ends = sums ? sums : starts;
  return ends[batch + 1] - ends[batch];
}

// index: of the head, over all batch entries.
__device__ inline Head head_of(const Args& args, uint64_t index, uint64_t offset) {
  Head h = {args.kept, args.seqlen_q, args.seqlen_k, offset + index * kLanes};
  uint64_t row = index * args.rows;
  if (args.cu_seqlens_q) {
    const uint64_t batch = index / args.heads, head = index - batch * args.heads;
    h.queries = used_rows(args.cu_seqlens_q, args.seqused_q, args.cu_seqused_q, batch);
    h.keys = used_rows(args.cu_seqlens_k, args.seqused_k, args.cu_seqused_k, batch);
    row = head * args.rows + args.cu_seqlens_q[batch];
  }
  h.kept += row * args.seqlen_k;
  return h;
}

__device__ inline void write_tile(const Args& args, const Head& h, uint64_t seed, uint32_t down,
                                  uint32_t across) {
  const uint32_t lane = threadIdx.x % kLanes;
  const uint64_t counter = h.offset + lane;
  uint32_t x[4] = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), down,
                   across};
  philox4x32(x, seed);
  // Less than 2^31 + 32: keys and queries beyond the last one are no negative numbers.
  const uint32_t key = across * kTile + lane % kTile;
  if (key >= args.seqlen_k) return;
  const uint32_t query = down * kTile + lane / kTile * 8;
  uint8_t* const kept = h.kept + key;
#pragma unroll
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t row = query + i / 8 * 16 + i % 8;
    const uint32_t byte = x[i / 4] >> (i % 4 * 8) & 0xff;
    if (row < h.queries) {
      kept[uint64_t{row} * args.seqlen_k] = key < h.keys && byte <= args.threshold;
    }
  }
}

// The same for all lanes of a tile, which the compiler cannot know.
__device__ inline uint32_t tile_in_workgroup() {
  return __builtin_amdgcn_readfirstlane(threadIdx.x / kLanes);
}

// A head's tiles, row by row, dealt out to all workgroups of the grid's first dimension.
__device__ inline void write_head(const Args& args, const Head& h, uint64_t seed) {
  const uint32_t across = tiles_of(args.seqlen_k), down = tiles_of(h.queries);
  const uint32_t first = blockIdx.x * kTilesPerWorkgroup + tile_in_workgroup();
  const uint32_t step = args.workgroups[0] * kTilesPerWorkgroup;
  const uint32_t step_down = step / across, step_across = step % across;
  uint32_t i = first / across, j = first % across;
  while (i < down) {
    write_tile(args, h, seed, i, j);
    i += step_down, j += step_across;
    if (j >= across) j -= across, ++i;
  }
}

__device__ inline void write_mask(const Args& args) {
  const uint64_t seed = args.rng_state ? args.rng_state[0] : args.seed;
  const uint64_t offset = args.rng_state ? args.rng_state[1] : args.offset;
  const uint64_t heads = uint64_t{args.batch} * args.heads;
  for (uint64_t i = blockIdx.y; i < heads; i += args.workgroups[1]) {
    write_head(args, head_of(args, i, offset), seed);
  }
}

}  // namespace dropout_mask
