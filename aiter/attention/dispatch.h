// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Which kernel instances serve a problem, as values; explain.h makes words of them.
//
// The order is that of upstream's dispatcher: head-size buckets first, the smallest that fits; then
// the instances of the bucket. Upstream refuses a length that is a multiple of the tile where only
// the padded form is built, and gives up if the first bucket has no match; here a padded instance
// serves every length, and larger buckets are tried. Where upstream selects an instance, it is the
// one selected here: of those that serve, the one with the fewest bounds checks that the problem
// does not need, and the first of equals. One problem is another on purpose: see
// passes/backward.
//
// The table's index finds the few instances that differ in bounds checks only, so the time does not
// grow with the table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "aiter/attention/problem/pass.h"
#include "aiter/attention/problem/problem.h"
#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::attention {

// A problem's request to the instances of its pass.
struct Request {
  const Pass* pass;
  kernels::Traits traits;  // those that are matched exactly; each kind is asked for those it has
  int32_t head_size_qk;
  int32_t head_size_v;
  int32_t seqlen_q;
  int32_t seqlen_k;
  // Sequences may have fewer, which the device alone knows.
  bool queries_on_device;
  bool lengths_on_device;  // of keys
  bool takes_unbuilt;      // kernels that the build has no bytes of may serve it
  bool spare_lse;          // forward: a kernel that writes an lse serves where none without does
  bool takes_v3;           // forward: kernels of upstream's third version may serve it
  bool sum_heads;          // backward: query heads share key heads
  bool sum_bias;           // backward: dbias is summed
  bool sink;  // forward, kvcache: o and lse get a sink; backward: its gradient is wanted
  // Over a cache, and appending to one.
  int32_t splits;     // 0: as many as fill the GPU
  int32_t page_size;  // 0: in place
  bool page_list;     // keys are found one by one
  int32_t batch;
  int32_t heads_q;
  int64_t query_rows;  // over all batch entries
  int64_t key_rows;    // over all batch entries
  int32_t seqlen_new;  // appending: keys that a sequence gets
  // Where the pass has kernels of several providers.
  int32_t preference;       // attn_kernels
  int32_t named_kernels;    // the same, in the call itself: it may be the default
  kernels::Kind asm_main;   // the kind of AITER's assembly
  const char* not_asm;      // why AITER's assembly does not serve it; NULL: it does
  const char* asm_by_name;  // why only where it is asked for by name; NULL: always
  bool asm_whole;           // backward: kernels for whole tiles serve it, too
  std::string_view arch;
};

// Both formats of fp8 are one in the table: the kernels for an arch compute with the arch's own.
// compute_units: the device's; 0: not known.
Request make_request(const Problem& problem, std::string_view arch, uint32_t compute_units = 0);

// Whether AITER's assembly is asked for by name, or by what it alone does.
inline bool needs_asm(const Request& request) {
  return request.preference == ATTN_KERNELS_ASM ||
         request.traits.rounding != kernels::Rounding::kNearestEven;
}

// Whether kernels of AITER's assembly may serve the request, if the build has them.
inline bool may_take_asm(const Request& request) {
  if (request.preference == ATTN_KERNELS_CK || request.not_asm) return false;
  return needs_asm(request) || !request.asm_by_name;
}

// Why an instance does not serve a request.
struct Mismatch {
  // The first that holds. Those further down are nearer to serving.
  enum Reason : uint8_t {
    kTrait,      // kTraits[trait] is another, or less than asked for
    kQueries,    // there are more queries than the instance is for
    kKeys,       // there are more keys than the instance is for
    kPadding,    // sequences have fewer queries than rows, which the instance does not check
    kSeqlen,     // a length is not a multiple of the tile, and not padded
    kPageSize,   // a tile of keys lies in more pages than the instance finds
    kAlignment,  // a head size is not a multiple of the instance's alignment
    kArch,       // the instance has no code object for it
    kUnbuilt,    // the build has not its bytes, and the request does not take such kernels
    kHazard,     // its results may be wrong
    kNone,
  };
  Reason reason = kNone;
  uint8_t trait = 0;

  bool operator<(const Mismatch& other) const {
    return reason != other.reason ? reason < other.reason : trait < other.trait;
  }
};

// For any arch.
Mismatch mismatch(const kernels::Row& row, const Request& request);

Mismatch mismatch(const kernels::LaunchTable& table, const kernels::Row& row,
                  const Request& request);

// The problems (bits of kernels::Hazard) because of which the results of a row's object may be
// wrong for a request; 0: none, or the object is asked for by name.
uint32_t hazards_met(const kernels::CodeObjectRow& object, const kernels::Row& row,
                     const Request& request);

// A kernel of a pass. row is NULL where no instance serves.
struct Step {
  kernels::Kind kind;
  const kernels::Row* row;
};

// The kernels of a pass in the order of their launches.
struct Plan {
  kernels::Kind main = {};  // the kernel that does most of the work
  std::array<Step, 7> steps;
  uint32_t count = 0;
  // Parts of the keys, whose results are combined; 0: that is no part of the plan.
  int32_t splits = 0;
  bool spare_lse = false;  // the kernel's lse is not wanted: it stays in the workspace

  void add(kernels::Kind kind, const kernels::Row* row) { steps[count++] = {kind, row}; }
  const Step* begin() const { return steps.data(); }
  const Step* end() const { return steps.data() + count; }
  // Those of a kind; NULL: no instance serves, or the plan has none of it.
  const kernels::Row* row(kernels::Kind kind) const;
  const kernels::Row* main_row() const { return row(main); }
  bool is_complete() const {
    for (const Step& step : *this) {
      if (!step.row) return false;
    }
    return true;
  }
};

// The pass's plan: of kernels that were built, as in every library of the same build; only where
// these do not serve, of all that the table has.
Plan dispatch(const kernels::LaunchTable& table, const Request& request);

// ---- for passes

// The kernels of one way to compute something, in the order of their launches; of all of them there
// are the same buckets.
struct KernelSequence {
  kernels::Kind main;
  kernels::Kind kinds[3];
  size_t count;
};

// Of the first bucket that has all of them. A kernel for few queries that computes dq needs none to
// convert it: that is no part of its plan.
Plan plan_kernels(const kernels::LaunchTable& table, const KernelSequence& sequence,
                  const Request& request);

// Of a pass with kernels of several providers: the plan of AITER's assembly where that may serve a
// request and the build has it, else the other one; where it is asked for by name never another.
template <typename PlanAsm, typename PlanOther>
Plan plan_by_provider(const Request& request, const PlanAsm& plan_asm,
                      const PlanOther& plan_other) {
  if (may_take_asm(request)) {
    const Plan plan = plan_asm();
    if (plan.is_complete() || needs_asm(request)) return plan;
  }
  if (!needs_asm(request)) return plan_other();
  Plan none;
  none.main = request.asm_main;
  none.add(request.asm_main, nullptr);
  return none;
}

// An instance of a kind that knows no head size; NULL: none serves.
const kernels::Row* pick_kernel(const kernels::LaunchTable& table, kernels::Kind kind,
                                const Request& request);

// The most of Pass::parts over all archs of the table.
int64_t most_parts(const kernels::LaunchTable& table, Request request);

// Whether an instance checks bounds along the keys, as some kinds always do.
bool checks_keys(const kernels::Row& row);

inline int64_t tiles(int64_t length, uint16_t tile) {
  return tile == 0 ? 1 : (length + tile - 1) / tile;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
