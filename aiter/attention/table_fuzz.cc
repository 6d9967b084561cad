// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A launch table with bytes changed or its end cut off: it is not valid, or dispatch and
// explanation read it, and no byte outside of it.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include "aiter/attention/dispatch.h"
#include "aiter/attention/explain.h"
#include "aiter/attention/passes/passes.h"
#include "kernels/launch_table/launch_table.h"
#include "tests/support/attention/table_builder.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using kernels::CodeObjectRow;
using kernels::Dtype;
using kernels::Kind;
using kernels::LaunchTable;
using kernels::Row;

constexpr Kind kKinds[] = {Kind::kFwd,          Kind::kBwdDotDoO,         Kind::kBwdDqDkDv,
                           Kind::kBwdConvertDq, Kind::kSumHeads,          Kind::kDropoutMask,
                           Kind::kFwdSplitkv,   Kind::kFwdSplitkvCombine, Kind::kFwdPagedkv,
                           Kind::kFwdAppendkv,  Kind::kFwdBatchPrefill};
constexpr Dtype kDtypes[] = {Dtype::kFp16, Dtype::kBf16};
constexpr const char* kArchs[] = {"gfx942", "gfx950", "", "none"};

void make_launch(const kernels::LaunchArgs&, kernels::Launch*) {}

// Two rows of each kind, on two archs.
std::string whole_table() {
  testing::TableBuilder builder({"gfx942", "gfx950"});
  const uint32_t recipe = builder.add_recipe("recipe");
  for (const Kind kind : kKinds) {
    for (const Dtype dtype : kDtypes) {
      Row row = {};
      row.head_size_alignment = 8;
      row.tile_seqlen_q = row.tile_seqlen_k = 64;
      row.traits.kind = kind;
      if (kind != Kind::kDropoutMask) row.traits.dtype = dtype;
      row.traits.lse = kind == Kind::kFwd || kind == Kind::kFwdSplitkvCombine;
      row.traits.paged_kv = kind == Kind::kFwdPagedkv;
      const bool own = kind == Kind::kSumHeads || kind == Kind::kDropoutMask;
      if (!own) row.traits.head_size_qk = row.traits.head_size_v = 64;
      CodeObjectRow object = {};
      object.key[0] = 1;
      object.recipe = recipe;
      object.group = 1;  // within the recipe's text
      builder.add(std::string(name_of(kind)) + "_" + name_of(dtype), row, make_launch,
                  {object, CodeObjectRow{}});
    }
  }
  builder.build("fuzz");
  return builder.bytes();
}

// 8-byte aligned and of the exact size, so that a byte behind it is not the process's.
struct Memory {
  explicit Memory(const std::string& bytes) : data(std::malloc(bytes.size())) {
    if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  }
  Memory(const Memory&) = delete;
  ~Memory() { std::free(data); }
  void* const data;
};

std::string changed_table(FuzzedDataProvider& input) {
  static const std::string whole = whole_table();
  std::string table = whole;
  if (input.ConsumeBool()) {
    table.resize(input.ConsumeIntegralInRange<size_t>(0, table.size()));
    const auto size = static_cast<uint32_t>(table.size());
    constexpr size_t kAt = offsetof(kernels::TableHeader, total_size);
    if (table.size() >= kAt + sizeof(size)) std::memcpy(table.data() + kAt, &size, sizeof(size));
  }
  const int changes = input.ConsumeIntegralInRange(0, 6);
  for (int i = 0; i < changes && !table.empty(); ++i) {
    const size_t at = input.ConsumeIntegralInRange<size_t>(0, table.size() - 1);
    const auto value = input.ConsumeIntegral<uint32_t>();
    const size_t size = input.PickValueInArray({1, 2, 4});
    std::memcpy(table.data() + at, &value, std::min(size, table.size() - at));
  }
  return table;
}

Request any_request(FuzzedDataProvider& input) {
  Request request = {};
  request.pass = input.PickValueInArray(passes());
  request.traits.dtype = input.PickValueInArray(kDtypes);
  request.traits.group_mode = input.ConsumeBool();
  request.traits.mask = input.ConsumeBool();
  request.traits.lse = input.ConsumeBool();
  request.head_size_qk = input.ConsumeIntegralInRange(1, 300);
  request.head_size_v = input.ConsumeIntegralInRange(1, 300);
  request.seqlen_q = input.ConsumeIntegralInRange(0, 200);
  request.seqlen_k = input.ConsumeIntegralInRange(0, 200);
  request.sum_heads = input.ConsumeBool();
  request.sum_bias = input.ConsumeBool();
  request.sink = input.ConsumeBool();
  request.page_size = input.ConsumeIntegralInRange(0, 200);
  request.traits.paged_kv = request.page_size > 0;
  request.splits = input.ConsumeIntegralInRange(0, 8);
  request.lengths_on_device = input.ConsumeBool();
  // Validation lets nothing below 0 through.
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  request.batch = input.ConsumeIntegralInRange(0, kMost);
  request.heads_q = input.ConsumeIntegralInRange(0, kMost);
  request.query_rows = input.ConsumeIntegralInRange(0, kMost);
  request.page_list = input.ConsumeBool();
  request.traits.rotary = input.PickValueInArray(
      {kernels::Rotary::kNone, kernels::Rotary::kHalves, kernels::Rotary::kInterleaved});
  request.seqlen_new = input.ConsumeIntegralInRange(0, 200);
  request.arch = input.PickValueInArray(kArchs);
  return request;
}

// The sum of all that the table says, so that all of it is read.
uint64_t read_all(const LaunchTable& table) {
  uint64_t sum = table.variant_set().size();
  for (uint32_t i = 0; i < table.row_count(); ++i) {
    const Row& row = table.row(i);
    if (table.index(row) != i) std::abort();
    sum += table.name(row).size() + (table.launch(row) == make_launch);
    sum += std::string_view(name_of(row.traits.kind)).size();
    sum += std::string_view(name_of(row.traits.dtype)).size();
    for (uint32_t a = 0; a < table.arch_count(); ++a) {
      const CodeObjectRow* const object = table.object(row, static_cast<int>(a));
      if (!object) continue;
      if (table.arch(*object) != table.arch(a)) std::abort();
      sum += object->key[0] + object->sha256[31] + object->size + object->source[31];
      if (object->recipe) sum += table.recipe(*object).size();
      sum += table.group(*object).size();
    }
    for (const uint32_t found : table.rows(exact_key(row.traits))) {
      if (found >= table.row_count()) std::abort();
    }
    sum += table.buckets(row.traits.kind, row.traits.dtype).size();
  }
  for (uint32_t a = 0; a < table.arch_count(); ++a) sum += table.arch(a).size();
  return sum;
}

void run(const uint8_t* data, size_t size) {
  FuzzedDataProvider input(data, size);
  const std::string bytes = changed_table(input);
  const Memory blob(bytes);
  if (!LaunchTable::valid(blob.data, bytes.size())) return;
  static constexpr kernels::MakeLaunch kLaunches[] = {make_launch};
  const LaunchTable table(blob.data, kLaunches, 1);
  const volatile uint64_t sum = read_all(table);
  (void)sum;
  for (int i = 0; i < 4; ++i) {
    const Request request = any_request(input);
    const Plan plan = dispatch(table, request);
    const std::string text =
        plan.is_complete() ? explain(table, request, plan) : explain_unserved(table, request, plan);
    if (text.empty()) std::abort();
  }
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  AITER_ATTN_NAMESPACE::attention::run(data, size);
  return 0;
}
