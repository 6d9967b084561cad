// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Which kernel instances serve a problem.
//
// The order is that of CK's own dispatcher: head-size buckets first, the smallest that fits; then
// the instances of the bucket. CK refuses a length that is a multiple of the tile where only the
// padded form is built, and gives up if the first bucket has no match; here a padded instance
// serves every length, and larger buckets are tried. Where CK selects an instance, it is the one
// selected here: of those that serve, the one with the fewest bounds checks that the problem does
// not need, and the first of equals. One problem is another on purpose: see make_request for
// backward.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "aiter/launch_table.h"
#include "aiter/problem.h"

namespace aiter_attn {

// What a problem asks of an instance.
struct Request {
  int32_t dtype;
  Mode mode;
  int32_t head_size_qk;
  int32_t head_size_v;
  int32_t seqlen_q;
  int32_t seqlen_k;
  bool mask;
  bool lse;        // forward: whether it is to be written
  bool sum_heads;  // backward: whether query heads share key heads
  std::string_view arch;
};

Request make_request(const attn_fwd_args& args, Mode mode, std::string_view arch);
Request make_request(const attn_bwd_args& args, Mode mode, std::string_view arch);

// Why an instance does not serve a request: the first of these, in this order, that holds.
enum class Mismatch {
  kDtype,
  kMode,
  kHeadSize,  // greater than the instance's
  kFeature,   // the instance has one that no request asks for: bias, dropout, ...
  kMask,
  kLse,
  kSeqlen,     // not a multiple of the tile, and not padded
  kAlignment,  // the head size is not a multiple of what the instance needs
  kArch,       // the instance has no code object for it
  kNone,
};

Mismatch mismatch(const Instance& instance, const Request& request);

struct FwdPlan {
  const Instance* fwd;
};

struct BwdPlan {
  const Instance* dot_do_o;
  const Instance* dq_dk_dv;
  const Instance* convert_dq;
  const Instance* sum_heads;  // NULL unless request.sum_heads
};

// Throw ATTN_ERROR_UNSUPPORTED where nothing serves; the message says what stands in the way, what
// this build has, and how to build what is missing.
FwdPlan select_fwd(const LaunchTable& table, const Request& request);
BwdPlan select_bwd(const LaunchTable& table, const Request& request);

// The instance's code object for arch; NULL where there is none.
const CodeObject* find_code_object(const Instance& instance, std::string_view arch);

// Whether the build has any code for arch.
bool has_arch(const LaunchTable& table, std::string_view arch);

// The name of a kind in the C ABI: "bwd_dot_do_o".
const char* kind_name(Kind kind);

}  // namespace aiter_attn
