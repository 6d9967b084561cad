// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A pass: one of the things that the library computes, and all that is particular of it. Every
// other part is generic over passes: it asks them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aiter/attention/problem/operands.h"
#include "aiter/attention/problem/problem.h"

namespace AITER_ATTN_NAMESPACE::kernels {
class LaunchTable;
struct Row;
}  // namespace AITER_ATTN_NAMESPACE::kernels

namespace AITER_ATTN_NAMESPACE::attention {

class Queue;
struct Plan;
struct Request;

// Whether the pointers matter: they do not where only a plan is asked for.
enum class Pointers { kRequired, kIgnored };

// Its room has the function that reads a caller's structs, too:
//   Problem read(const ARGS*, Pointers);
// It throws kInvalidArgument, or kUnsupported where only the device is in the way. The problem is
// canonical: strides of dimensions with one entry are those of a contiguous tensor, and a window as
// wide as the sequences is -1. The problems below are from there.
class Pass {
 public:
  const char* const name;  // in explanations
  const char* const idle;  // an explanation where there is no work
  // The function of the C ABI that tells the size of a workspace; NULL: there is none.
  const char* const workspace_function;
  const bool writes_lse;

  virtual Operands operands(const Problem&) const = 0;
  // Whether any kernel has something to do.
  virtual bool has_work(const Problem&) const = 0;
  // Memory beside operands, lse, slopes, sink, lengths, random state and workspace. Where a pass
  // has no work, outputs of these become zero, too.
  virtual std::vector<Array> arrays(const Problem&) const { return {}; }

  // Bytes of workspace on the GPU, for as many parts as kernels keep apart at most. Throws
  // kInvalidArgument where they do not fit into 64 bits.
  virtual uint64_t workspace_size(const Problem&) const { return 0; }
  // Throws kInvalidArgument where kernels do not reach all of a workspace that is not empty.
  virtual void validate_workspace(const Problem&) const {}

  // Whether several providers have kernels for it: then the problem's kernels and rounding matter.
  virtual bool chooses_provider() const { return false; }
  // Whether it takes padded sequences; and on a GPU in batch mode, by cu_seqused_q and
  // cu_seqused_k.
  virtual bool takes_padding() const { return false; }
  virtual bool takes_padded_batches() const { return false; }
  // Adds its own to a request.
  virtual void ask(const Problem&, Request*) const {}
  // The problems on which an object may be known to be wrong (bits of kernels::Hazard) and that a
  // request may have on a row's kernel, but for those that the launch avoids.
  virtual uint32_t hazards(const Request&, const kernels::Row&) const { return ~uint32_t{0}; }
  // Where the plan is not complete, the kinds without a row are what the largest bucket lacks.
  virtual Plan plan(const kernels::LaunchTable&, const Request&) const = 0;
  // Results that a plan keeps apart in a workspace; 0: none.
  virtual int64_t parts(const Request&, const Plan&) const { return 0; }
  // The problem's most_parts: the most that kernels of this build keep apart, on any arch.
  virtual int64_t most_parts(const kernels::LaunchTable&, const Problem&) const { return 0; }
  // Lengths in an explanation; "": those of queries and keys.
  virtual std::string lengths(const Request&) const { return {}; }

  // Queues a complete plan, of a problem that has work.
  virtual void launch(const Problem&, const Plan&, Queue*) const = 0;

  // On the CPU. Throws kOutOfMemory, naming the sizes, and kInterrupted where the calling thread's
  // interrupt (interrupt.h) asks to stop.
  virtual void compute(const Problem&) const = 0;

 protected:
  constexpr Pass(const char* name, const char* workspace_function, bool writes_lse = false,
                 const char* idle = "no kernel: without queries or keys, outputs are filled\n")
      : name(name), idle(idle), workspace_function(workspace_function), writes_lse(writes_lse) {}
  ~Pass() = default;
};

}  // namespace AITER_ATTN_NAMESPACE::attention
