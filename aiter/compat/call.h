// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The frame of a call of AITER's interface, whatever its struct: refusals, passes, time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "aiter/attn.h"
#include "ck_tile/host.hpp"

namespace AITER_ATTN_NAMESPACE::compat {

// A field of the C ABI's structs, and the field of AITER's struct that its value is from.
using Names = std::vector<std::pair<std::string, std::string>>;

// Memory of the caller's, asked for by its size; empty: HIP's pool.
using WorkspaceAlloc = std::function<void*(size_t bytes)>;

// Calls of the C ABI that make up one of AITER's. Their problems are members: args.problem and
// args.cache are set by run().
struct Forward {
  attn_problem problem;
  attn_fwd_args args;
};

struct Backward {
  attn_problem problem;
  attn_bwd_args args;
};

struct Cached {
  attn_problem problem;
  attn_kvcache cache;
  attn_kvcache_fwd_args args;
};

// Whether AITER's assembly is asked for, and how.
struct Preference {
  bool use_asm;
  bool only_check;  // nothing is launched
  int rounding;     // attn_rounding
};

// The body's answer; -1 where it throws, after the reason is on stderr, with AITER's names.
float answered(const char* function, const std::function<Names()>& names,
               const std::function<float()>& body) noexcept;

// They throw what the C ABI refuses.
float run(std::vector<Forward> calls, const Preference& preference,
          const ck_tile::stream_config& stream, const WorkspaceAlloc& alloc);
float run(std::vector<Backward> calls, const Preference& preference,
          const ck_tile::stream_config& stream, const WorkspaceAlloc& alloc);
float run(const Cached& call, const ck_tile::stream_config& stream);

// Without launching anything.
bool is_served(Forward call, bool use_asm);
uint64_t workspace_size(std::vector<Backward> calls, bool use_asm);

}  // namespace AITER_ATTN_NAMESPACE::compat
