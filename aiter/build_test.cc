// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The launch table of this very build, whatever its variant set and archs: for every row there is a
// problem that it serves, its code object is whole and has the kernel, and the kernel arguments
// that CK's host code makes hold the problem's pointers and scale.
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "aiter/attn.h"
#include "aiter/dispatch.h"
#include "aiter/store/sha256.h"
#include "aiter/testing/recorder.h"
#include "aiter/testing/testing.h"

namespace aiter_attn::testing {
namespace {

// Addresses that nothing reads: kernels are not run.
void* address(int n) { return reinterpret_cast<void*>(uintptr_t{0x7f0000000000} + n * 0x10000); }

constexpr int32_t kBatch = 3, kHeadsQ = 6, kHeadsK = 2;

// Lengths that the row's tiles do not divide where it checks bounds, else do.
int32_t length(bool padded, uint16_t tile) { return padded ? 2 * tile + 1 : 2 * tile; }

// A head size that needs the row's bounds checks, if it makes them, and no smaller bucket.
int32_t head_size(bool padded, uint16_t greatest) { return padded ? greatest - 8 : greatest; }

attn_problem problem_for(const Instance& instance, int32_t device) {
  const Traits& t = instance.traits;
  attn_problem p = {};
  p.device_type = ATTN_DEVICE_ROCM;
  p.device_id = device;
  p.stream = address(1);
  p.dtype = t.dtype;
  p.batch = kBatch;
  p.heads_q = kHeadsQ;
  p.heads_k = kHeadsK;
  p.head_size_qk = head_size(t.pad_head_size_qk, t.head_size_qk);
  p.head_size_v = head_size(t.pad_head_size_v, t.head_size_v);
  p.seqlen_q = length(t.pad_seqlen_q, instance.tile_seqlen_q);
  p.seqlen_k = length(t.pad_seqlen_k, instance.tile_seqlen_k);
  p.softmax_scale = 0.123f;
  p.mask = t.mask ? ATTN_MASK_BOTTOM_RIGHT : ATTN_MASK_NONE;
  p.window_left = -1;
  p.window_right = t.mask ? 0 : -1;
  if (t.group_mode) {
    p.total_q = 2 * p.seqlen_q;
    p.total_k = 2 * p.seqlen_k;
    p.cu_seqlens_q = static_cast<const int32_t*>(address(2));
    p.cu_seqlens_k = static_cast<const int32_t*>(address(3));
  }
  return p;
}

attn_tensor tensor(int n, int64_t seqlen, int64_t heads, int64_t head_size) {
  return {address(n), seqlen * heads * head_size, heads * head_size, head_size};
}

attn_fwd_args fwd_args(const attn_problem& p, bool lse) {
  attn_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = p;
  args.q = tensor(10, p.seqlen_q, p.heads_q, p.head_size_qk);
  args.k = tensor(11, p.seqlen_k, p.heads_k, p.head_size_qk);
  args.v = tensor(12, p.seqlen_k, p.heads_k, p.head_size_v);
  args.o = tensor(13, p.seqlen_q, p.heads_q, p.head_size_v);
  args.lse = lse ? static_cast<float*>(address(14)) : nullptr;
  return args;
}

// The workspace is real memory: its fills are done.
attn_bwd_args bwd_args(const attn_problem& p, std::vector<unsigned char>* workspace) {
  attn_bwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = p;
  args.q = tensor(10, p.seqlen_q, p.heads_q, p.head_size_qk);
  args.k = tensor(11, p.seqlen_k, p.heads_k, p.head_size_qk);
  args.v = tensor(12, p.seqlen_k, p.heads_k, p.head_size_v);
  args.o = tensor(13, p.seqlen_q, p.heads_q, p.head_size_v);
  args.dout = tensor(15, p.seqlen_q, p.heads_q, p.head_size_v);
  args.lse = static_cast<float*>(address(14));
  args.dq = tensor(16, p.seqlen_q, p.heads_q, p.head_size_qk);
  args.dk = tensor(17, p.seqlen_k, p.heads_k, p.head_size_qk);
  args.dv = tensor(18, p.seqlen_k, p.heads_k, p.head_size_v);
  EXPECT_EQ(attn_bwd_workspace_size(&args, &args.workspace_size), ATTN_OK);
  workspace->resize(args.workspace_size + 256);
  const auto begin = reinterpret_cast<uintptr_t>(workspace->data());
  args.workspace = reinterpret_cast<void*>((begin + 255) / 256 * 256);
  return args;
}

bool holds_pointer(const RecordedCall& call, const void* pointer) {
  for (size_t at = 0; at + sizeof(pointer) <= call.kernarg_size; at += sizeof(pointer)) {
    if (std::memcmp(call.kernarg + at, &pointer, sizeof(pointer)) == 0) return true;
  }
  return false;
}

bool holds_float(const RecordedCall& call, float value) {
  for (size_t at = 0; at + sizeof(value) <= call.kernarg_size; at += sizeof(value)) {
    if (std::memcmp(call.kernarg + at, &value, sizeof(value)) == 0) return true;
  }
  return false;
}

void expect_pointers(const RecordedCall& call, const std::vector<const void*>& pointers) {
  for (const void* pointer : pointers) {
    if (!holds_pointer(call, pointer)) {
      report_failure(__FILE__, __LINE__,
                     std::string(call.symbol) + "'s arguments lack " + show(pointer));
    }
  }
}

const Instance* row_of(const RecordedCall& call) {
  const LaunchTable& table = launch_table();
  for (uint32_t i = 0; i < table.instance_count; ++i) {
    if (std::strcmp(table.instances[i].symbol, call.symbol) == 0) return &table.instances[i];
  }
  return nullptr;
}

void expect_sound(const RecordedCall& call, const char* arch, std::set<std::string>* launched) {
  const Instance* row = row_of(call);
  EXPECT(row != nullptr);
  if (!row) return;
  launched->insert(row->name);
  const CodeObject* object = find_code_object(*row, arch);
  EXPECT_EQ(std::string(call.module_sha256), object->sha256);
  EXPECT_EQ(call.module_size, object->size);
  EXPECT_EQ(call.block[0], row->block_size);
  EXPECT(call.grid[0] > 0 && call.grid[1] > 0 && call.grid[2] > 0);
  EXPECT(call.kernarg_size > 0);
}

void launch_forward(const Instance& row, int32_t device, std::set<std::string>* launched) {
  const char* const arch = launch_table().archs[device];
  const attn_fwd_args args = fwd_args(problem_for(row, device), row.traits.lse);
  const Recorder recorder;
  const attn_status status = row.traits.group_mode ? attn_varlen_fwd(&args) : attn_fwd(&args);
  EXPECT_EQ(std::string(attn_last_error()), "");
  if (status != ATTN_OK) return;
  const std::vector<RecordedCall> calls = recorder.of(kRecordedLaunch);
  EXPECT_EQ(calls.size(), 1u);
  expect_sound(calls[0], arch, launched);
  expect_pointers(calls[0], {args.q.data, args.k.data, args.v.data, args.o.data});
  if (args.lse) expect_pointers(calls[0], {args.lse});
  if (row.traits.group_mode) {
    expect_pointers(calls[0], {args.problem.cu_seqlens_q, args.problem.cu_seqlens_k});
  }
  EXPECT_EQ(calls[0].stream, args.problem.stream);
}

void launch_backward(const Instance& row, int32_t device, std::set<std::string>* launched) {
  const char* const arch = launch_table().archs[device];
  std::vector<unsigned char> workspace;
  const attn_bwd_args args = bwd_args(problem_for(row, device), &workspace);
  const Recorder recorder;
  const attn_status status = row.traits.group_mode ? attn_varlen_bwd(&args) : attn_bwd(&args);
  EXPECT_EQ(std::string(attn_last_error()), "");
  if (status != ATTN_OK) return;
  const std::vector<RecordedCall> calls = recorder.of(kRecordedLaunch);
  EXPECT_EQ(calls.size(), 5u);
  for (const RecordedCall& call : calls) expect_sound(call, arch, launched);
  expect_pointers(calls[0], {args.o.data, args.dout.data, args.workspace});
  expect_pointers(
      calls[1], {args.q.data, args.k.data, args.v.data, args.dout.data, args.lse, args.workspace});
  EXPECT(holds_float(calls[1], args.problem.softmax_scale));
  expect_pointers(calls[2], {args.dq.data});
  expect_pointers(calls[3], {args.dk.data});
  expect_pointers(calls[4], {args.dv.data});
}

// Forward rows and backward's main rows are asked for one by one; the others come along.
TEST(every_row_can_be_launched_on_every_arch) {
  const LaunchTable& table = launch_table();
  EXPECT(table.instance_count > 0 && table.arch_count > 0);
  std::string devices;
  for (uint32_t i = 0; i < table.arch_count; ++i) {
    devices += std::string(i ? "," : "") + table.archs[i];
  }
  const Environment archs("AITER_RECORDING_HIP_ARCHS", devices);
  for (int32_t device = 0; device < static_cast<int32_t>(table.arch_count); ++device) {
    std::set<std::string> launched;
    for (uint32_t i = 0; i < table.instance_count; ++i) {
      const Instance& row = table.instances[i];
      EXPECT_EQ(row.code_object_count, table.arch_count);
      // Problems of the C ABI ask for none of these.
      if (mismatch(row, {row.traits.dtype, row.traits.group_mode ? Mode::kGroup : Mode::kBatch, 1,
                         1, 0, 0, row.traits.mask, row.traits.lse, false, table.archs[device]}) ==
          Mismatch::kFeature) {
        launched.insert(row.name);
        continue;
      }
      // The masked row stands in for it: see make_request.
      if (row.traits.kind == Kind::kBwdDqDkDv && row.traits.group_mode && !row.traits.mask) {
        launched.insert(row.name);
      }
      if (row.traits.kind == Kind::kFwd) launch_forward(row, device, &launched);
      if (row.traits.kind == Kind::kBwdDqDkDv) launch_backward(row, device, &launched);
    }
    for (uint32_t i = 0; i < table.instance_count; ++i) {
      const Instance& row = table.instances[i];
      // There for both types, whichever the variant set has.
      if (row.traits.kind == Kind::kSumHeads) continue;
      if (!launched.count(row.name)) {
        report_failure(__FILE__, __LINE__, std::string("nothing launches ") + row.name);
      }
    }
  }
}

TEST(every_code_object_has_its_digest) {
  for (uint32_t i = 0; i < attn_kernel_count(); ++i) {
    attn_kernel_info_t info = {};
    info.struct_size = sizeof(info);
    EXPECT_EQ(attn_kernel_info(i, &info), ATTN_OK);
    void* data = nullptr;
    uint64_t size = 0;
    EXPECT_EQ(attn_code_object(info.key, &data, &size), ATTN_OK);
    EXPECT_EQ(size, info.code_object_size);
    EXPECT(info.embedded_size < info.code_object_size);
    attn_code_object_free(data);
  }
}

}  // namespace
}  // namespace aiter_attn::testing
