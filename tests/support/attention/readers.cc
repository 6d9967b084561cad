// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "tests/support/attention/readers.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "aiter/attention/dispatch.h"
#include "aiter/attention/explain.h"
#include "aiter/attention/passes/passes.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/store/pack.h"

namespace AITER_ATTN_NAMESPACE::testing {
namespace {

using kernels::LaunchTable;
using kernels::Row;

// Every byte of what was read counts, so that none is left out.
size_t touched = 0;

void touch(std::string_view text) { touched += std::count(text.begin(), text.end(), '\0'); }

template <typename Record>
void touch_record(const Record& record) {
  touch({reinterpret_cast<const char*>(&record), sizeof(record)});
}

void read_row(const LaunchTable& table, const Row& row) {
  touch_record(row);
  touch(table.name(row));
  touch(name_of(row.traits.kind));
  touch(name_of(row.traits.dtype));
  for (uint32_t a = 0; a < table.arch_count(); ++a) {
    if (const auto* object = table.object(row, static_cast<int>(a))) touch_record(*object);
  }
  for (const auto& bucket : table.buckets(row.traits.kind, row.traits.dtype)) touch_record(bucket);
}

// As a problem asks that the row serves, if one can.
attention::Request request_of(const Row& row, const attention::Pass* pass, std::string_view arch) {
  attention::Request request = {};
  request.pass = pass;
  request.traits = row.traits;
  request.head_size_qk = std::max<int32_t>(row.traits.head_size_qk, 1);
  request.head_size_v = std::max<int32_t>(row.traits.head_size_v, 1);
  request.seqlen_q = std::max<int32_t>(row.tile_seqlen_q, 1);
  request.seqlen_k = std::max<int32_t>(row.tile_seqlen_k, 1);
  request.sum_heads = row.traits.kind == kernels::Kind::kSumHeads;
  request.sink =
      row.traits.kind == kernels::Kind::kSink || row.traits.kind == kernels::Kind::kSinkGrad;
  request.page_size = row.traits.paged_kv ? request.seqlen_k : 0;
  request.batch = request.heads_q = 1;
  request.query_rows = request.seqlen_q;
  request.arch = arch;
  return request;
}

}  // namespace

bool read_launch_table(const void* data, size_t size) {
  std::vector<uint64_t> aligned(size / sizeof(uint64_t) + 1);
  if (size != 0) std::memcpy(aligned.data(), data, size);
  if (!LaunchTable::valid(aligned.data(), size)) return false;
  const LaunchTable table(aligned.data(), nullptr, 0);
  touch(table.variant_set());
  std::vector<std::string_view> archs = {"gfx000"};
  for (uint32_t a = 0; a < table.arch_count(); ++a) archs.push_back(table.arch(a));
  for (uint32_t i = 0; i < table.row_count(); ++i) {
    const Row& row = table.row(i);
    read_row(table, row);
    for (const attention::Pass* const pass : attention::passes()) {
      for (const std::string_view arch : archs) {
        const attention::Request request = request_of(row, pass, arch);
        const attention::Plan plan = dispatch(table, request);
        touch(plan.is_complete() ? explain(table, request, plan)
                                 : explain_unserved(table, request, plan));
      }
    }
  }
  return true;
}

bool read_pack(const void* data, size_t size) {
  try {
    const auto* const bytes = static_cast<const unsigned char*>(data);
    runtime::PackProvider pack("the pack", bytes, size);
    for (uint64_t i = 0; i < pack.count(); ++i) {
      if (!pack.get({pack.entry(i).key, {}})) return false;  // not where a search looks
    }
    return true;
  } catch (const runtime::Error& error) {
    if (error.status() != runtime::Status::kCorrupt) throw;
    return false;
  }
}

}  // namespace AITER_ATTN_NAMESPACE::testing
