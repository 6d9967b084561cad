// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The records of the stubs of upstream's instances.
#pragma once

#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "ck_tile/core.hpp"
#include "ck_tile/host/stream_config.hpp"
#include "tests/dispatch/upstream.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {

// An instance that upstream's dispatcher has picked, and how it is launched.
template <typename Args>
struct Pick {
  const char* name;
  void (*make)(const Args&, Launch*);
};

template <typename Args>
inline std::vector<Pick<Args>> picks;

template <typename Args>
void pick(const char* name, void (*make)(const Args&, Launch*)) {
  picks<Args>.push_back({name, make});
}

// Kernel arguments and a grid as upstream made them: a tuple of both.
template <typename Kernel, typename Made>
void store(const Made& made, Launch* launch) {
  const auto& kargs = made.at(ck_tile::number<0>{});
  const dim3& grid = made.at(ck_tile::number<1>{});
  const dim3 block = Kernel::BlockSize();
  launch->grid[0] = grid.x, launch->grid[1] = grid.y, launch->grid[2] = grid.z;
  launch->block[0] = block.x, launch->block[1] = block.y, launch->block[2] = block.z;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&kargs);
  launch->kernarg.assign(bytes, bytes + sizeof(kargs));
}

// Where recorded_kernel() stores, and the name of the instance.
inline Launch* recorded = nullptr;

// Whether split kernels are asked for in the form that serves every call.
inline bool in_plain_form = false;

// Those of the GPU that upstream's dispatchers ask for, and its arch (defs.bzl).
constexpr const char* kArch = AITER_PARITY_ARCH;
constexpr int kComputeUnits = 304;
inline int compute_units = kComputeUnits;

// A launch by upstream's function that runs an instance: in the form that it chooses at run time,
// or in the plain one.
template <typename Args>
void store_run(void (*run_any)(const ck_tile::stream_config&, Args),
               void (*run_plain)(const ck_tile::stream_config&, Args), const Args& args,
               Launch* launch) {
  recorded = launch;
  (in_plain_form ? run_plain : run_any)(ck_tile::stream_config{}, args);
}

// "" where a kernel has one form.
template <typename Kernel>
auto form_of(int)
    -> std::enable_if_t<(Kernel::FmhaPipeline::Problem::kHasUnevenSplits || true), const char*> {
  using Problem = typename Kernel::FmhaPipeline::Problem;
  if (Problem::kMergeNumHeadGroupsSeqLenQ) return " (merged heads)";
  return Problem::kHasUnevenSplits ? "" : " (even splits)";
}
template <typename Kernel>
const char* form_of(...) {
  return "";
}

// Leaves its value on the part of the stack that is used next.
[[gnu::noinline]] inline void dirty_stack(unsigned char value) {
  unsigned char bytes[8192];
  std::memset(bytes, value, sizeof(bytes));
  asm volatile("" ::"r"(bytes) : "memory");
}

template <typename Args>
[[gnu::noinline]] Launch made_on(unsigned char value, const Pick<Args>& picked, const Args& args) {
  Launch launch = {picked.name};
  dirty_stack(value);
  picked.make(args, &launch);
  return launch;
}

// The launches of all picks, which are forgotten. Bytes between fields are the stack's.
template <typename Args>
std::vector<Launch> launches_of(const Args& args) {
  std::vector<Launch> launches;
  for (const Pick<Args>& picked : std::exchange(picks<Args>, {})) {
    const Launch other = made_on(0xff, picked, args);
    Launch launch = made_on(0x00, picked, args);
    for (size_t i = 0; i < launch.kernarg.size(); ++i) {
      launch.is_field.push_back(launch.kernarg[i] == other.kernarg[i]);
    }
    launches.push_back(std::move(launch));
  }
  return launches;
}

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity

namespace ck_tile {

// In place of make_kernel(), which makes what launches.
template <int, typename Kernel, typename Kargs>
auto recorded_kernel(Kernel, dim3 grid, dim3, size_t, const Kargs& kargs) {
  namespace parity = AITER_ATTN_NAMESPACE::attention::dispatch_parity;
  parity::store<Kernel>(ck_tile::make_tuple(kargs, grid), parity::recorded);
  parity::recorded->name += parity::form_of<Kernel>(0);
  return [](const stream_config&) {};
}
template <int, typename Arch, typename Kernel, typename Kargs>
auto recorded_kernel(Kernel kernel, dim3 grid, dim3 block, size_t lds, const Kargs& kargs) {
  return recorded_kernel<0>(kernel, grid, block, lds, kargs);
}

}  // namespace ck_tile
