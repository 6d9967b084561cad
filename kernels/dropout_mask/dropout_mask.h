// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The arguments of the dropout mask's kernel, for the device and for the host that launches it.
//
// Attention kernels drop weights as they compute and tell nobody which. This one makes the same
// random numbers and writes what becomes of them:
//
//   kept  [batch, heads, seqlen_q, seqlen_k], in group mode [heads, total_q, seqlen_k], contiguous:
//         1 where a weight stays, 0 where it is dropped or beyond a sequence's own keys
#pragma once

#include <stdint.h>

// No function here has a symbol: libraries of two namespaces may hold them.
namespace dropout_mask {

struct Args {
  uint8_t* kept;
  const int32_t* cu_seqlens_q;  // [batch + 1] in group mode, else NULL
  const int32_t* cu_seqlens_k;  // likewise
  const int32_t* seqused_q;     // [batch]: rows beyond are padding; or NULL
  const int32_t* seqused_k;     // the same of keys
  const int32_t* cu_seqused_q;  // [batch + 1]: the same as sums; or NULL
  const int32_t* cu_seqused_k;
  const uint64_t* rng_state;  // {seed, offset}; NULL: the two below
  uint64_t seed, offset;
  uint32_t batch, heads;
  uint32_t seqlen_q, seqlen_k;  // in group mode the greatest
  uint32_t rows;                // of a head in kept: seqlen_q, in group mode total_q
  uint32_t threshold;           // of random bytes: those up to it stay
  uint32_t workgroups[2];       // the grid: the kernel asks for no hidden argument
};

constexpr uint32_t kBlockSize = 256;
// Upstream draws for tiles of so many queries and keys, one by 64 lanes.
constexpr uint32_t kTile = 32;
constexpr uint32_t kLanes = 64;
constexpr uint32_t kTilesPerWorkgroup = kBlockSize / kLanes;

static constexpr uint32_t tiles_of(uint32_t length) { return (length + kTile - 1) / kTile; }

// The grid {x, y, 1} for a head's tiles and for all heads of all batch entries: one tile for every
// 64 work-items, up to where the device is full and they take several.
static constexpr void workgroups_for(int64_t tiles, int64_t heads, uint32_t grid[2]) {
  constexpr int64_t kMostHeads = 4096, kEnough = 65536;
  const int64_t y = heads < 1 ? 1 : heads < kMostHeads ? heads : kMostHeads;
  const int64_t wanted = (tiles + kTilesPerWorkgroup - 1) / kTilesPerWorkgroup;
  const int64_t most = kEnough / y;
  grid[0] = static_cast<uint32_t>(wanted < 1 ? 1 : wanted < most ? wanted : most);
  grid[1] = static_cast<uint32_t>(y);
}

}  // namespace dropout_mask
