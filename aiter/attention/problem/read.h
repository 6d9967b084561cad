// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// From a caller's structs to the fields of a problem, by the list of the structs' fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "aiter/attention/problem/error.h"
#include "aiter/attention/problem/problem.h"
#include "aiter/attn.h"
#include "aiter/fields.h"
#include "aiter/runtime/abi.h"

ATTN_ABI_STRUCT(attn_problem, 96);
ATTN_ABI_STRUCT(attn_kvcache, 64);
static_assert(sizeof(attn_tensor) == 32, "frozen");

namespace AITER_ATTN_NAMESPACE::attention {

template <typename Struct>
void require_zero(const Struct&, const char* field, uint32_t value) {
  if (value == 0) return;
  fail(Status::kAbiMismatch, runtime::AbiStruct<Struct>::kName, ".", field, " is ", value,
       ", but must be 0: zero the struct before you fill it in");
}

inline void take(const attn_problem* given, Problem* p) {
  static_cast<attn_problem&>(*p) = runtime::read_struct(given);
}
inline void take(const attn_kvcache* given, Problem* p) {
  p->cache = runtime::read_struct(given);
  require_zero(p->cache, "reserved", p->cache.reserved);
}
inline void take(const attn_append_kv_args*, Problem*) {}  // a pass of its own

// Each field of args becomes the one of its name in p; of a tensor by scores NAME_matrix.
#define ATTN_TAKE(kind, type, name) ATTN_TAKE_##kind(name)
#define ATTN_TAKE_kStructSize(name)
#define ATTN_TAKE_kReserved(name) require_zero(args, #name, args.name);
#define ATTN_TAKE_kStruct(name) take(args.name, p);
#define ATTN_TAKE_kScores(name) p->name##_matrix = args.name;
#define ATTN_TAKE_kArray(name) p->name = const_cast<decltype(p->name)>(args.name);
#define ATTN_TAKE_kExtent(name) p->name = args.name;
#define ATTN_TAKE_kOption(name) p->name = args.name;
#define ATTN_TAKE_kStride(name) p->name = args.name;
#define ATTN_TAKE_kTensor(name) p->name = args.name;
#define ATTN_TAKE_kWorkspace(name) p->name = args.name;
#define ATTN_TAKE_kWorkspaceSize(name) p->name = args.name;

// The args of a pass: how read_problem reads them.
#define ATTN_PASS_ARGS(Args, FIELDS, least)                                   \
  ATTN_ABI_STRUCT(Args, least);                                               \
  namespace AITER_ATTN_NAMESPACE::attention {                                 \
  inline void take_fields(const Args& args, Problem* p) { FIELDS(ATTN_TAKE) } \
  }

// A problem of the pass, of which nothing is checked but the structs' sizes and reserved fields.
template <typename Args>
Problem read_problem(const Args* given, const Pass& pass) {
  Problem p = {};
  p.pass = &pass;
  take_fields(runtime::read_struct(given), &p);
  return p;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
