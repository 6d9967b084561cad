// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The launch table of this very build, for any variant set and archs: for every row there is a
// problem that it serves, its code object is whole and has the kernel, and the kernel arguments
// that upstream's host code makes hold the problem's pointers and scale.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "aiter/attention/code_object.h"
#include "aiter/attn.h"
#include "aiter/runtime/library_store.h"
#include "tests/support/runtime/recorder.h"

namespace AITER_ATTN_NAMESPACE::testing {
namespace {

using attention::digest;
using kernels::launch_table;
using kernels::LaunchTable;
using kernels::Row;

// Addresses that nothing reads, far from each other: kernels are not run.
void* address(int n) { return reinterpret_cast<void*>(uintptr_t{0x7f} << 40 | uintptr_t(n) << 32); }

constexpr int32_t kBatch = 3, kHeadsQ = 6, kHeadsK = 2;

// Lengths that the row's tiles do not divide where it checks bounds, else do.
int32_t length(bool padded, uint16_t tile) { return padded ? 2 * tile + 1 : 2 * tile; }

// A head size that needs the row's bounds checks, if it makes them, and no smaller bucket.
int32_t head_size(bool padded, uint16_t greatest) { return padded ? greatest - 8 : greatest; }

bool is_asm(const Row& row) {
  return std::string_view(kernels::provider_of(row.traits.kind)) == "asm";
}

bool is_asm_backward(kernels::Kind kind) {
  return kind == kernels::Kind::kBwdAsm || kind == kernels::Kind::kBwdAsmWhole;
}

// The mask that a row is for, as attn_mask.
int32_t mask_of(const kernels::Traits& t) {
  static_assert(static_cast<int>(kernels::MaskShape::kTopLeft) == ATTN_MASK_TOP_LEFT);
  static_assert(static_cast<int>(kernels::MaskShape::kBottomRight) == ATTN_MASK_BOTTOM_RIGHT);
  if (is_asm_backward(t.kind)) return static_cast<int32_t>(t.mask_shape);
  return t.mask ? ATTN_MASK_BOTTOM_RIGHT : ATTN_MASK_NONE;
}

attn_problem problem_for(const Row& row, int32_t device) {
  const kernels::Traits& t = row.traits;
  attn_problem p = {};
  p.struct_size = sizeof(p);
  p.mode = t.group_mode ? ATTN_MODE_GROUP : ATTN_MODE_BATCH;
  p.device_type = ATTN_DEVICE_ROCM;
  p.device_id = device;
  p.stream = address(1);
  p.dtype = static_cast<int32_t>(t.dtype);
  p.batch = kBatch;
  p.heads_q = kHeadsQ;
  p.heads_k = kHeadsK;
  p.head_size_qk = head_size(t.pad_head_size_qk, t.head_size_qk);
  p.head_size_v = head_size(t.pad_head_size_v, t.head_size_v);
  p.seqlen_q = length(t.pad_seqlen_q, row.tile_seqlen_q);
  if (t.max_seqlen_q != 0) p.seqlen_q = t.max_seqlen_q;
  p.seqlen_k = length(t.pad_seqlen_k, row.tile_seqlen_k);
  if (t.kind == kernels::Kind::kBwdDqDkDv) {
    // In group mode of both sequences; beyond those of kernels for few keys.
    p.seqlen_k = t.max_seqlen_k != 0 ? t.max_seqlen_k / 2 : 4 * row.tile_seqlen_k;
  }
  p.softmax_scale = 0.123f;
  p.mask = mask_of(t);
  p.window_left = -1;
  p.window_right = p.mask != ATTN_MASK_NONE ? 0 : -1;
  p.kernels = is_asm(row) ? ATTN_KERNELS_ASM : ATTN_KERNELS_CK;
  p.rounding = static_cast<int32_t>(t.rounding);
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
  args.problem = &p;
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
  args.problem = &p;
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
      ADD_FAILURE() << call.symbol << "'s arguments lack " << pointer;
    }
  }
}

// The row of a recorded launch, which must be sound.
const Row* launched_row(const RecordedCall& call, int arch) {
  const LaunchTable& table = launch_table();
  for (uint32_t i = 0; i < table.row_count(); ++i) {
    const Row& row = table.row(i);
    if (table.symbol(row) != call.symbol) continue;
    const kernels::CodeObjectRow& object = *table.object(row, arch);
    // Two schedules of AITER's have one symbol.
    if (is_asm(row) && call.module_sha256 != runtime::hex(digest(object.sha256))) continue;
    EXPECT_EQ(call.module_sha256, runtime::hex(digest(object.sha256)));
    EXPECT_EQ(call.module_size, object.size);
    for (int d = 0; d < 3; ++d) {
      EXPECT_EQ(call.block[d], object.block[d]);
      EXPECT_GT(call.grid[d], 0u);
    }
    EXPECT_EQ(call.kernarg_size, row.kernarg_size);
    EXPECT_GT(call.kernarg_size, 0u);
    return &row;
  }
  ADD_FAILURE() << "no row of " << call.symbol;
  return nullptr;
}

void launch_forward(const Row& row, int32_t device, std::set<const Row*>* launched) {
  const attn_problem p = problem_for(row, device);
  const attn_fwd_args args = fwd_args(p, row.traits.lse);
  const Recorder recorder;
  ASSERT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
  const std::vector<RecordedCall> calls = recorder.of(kRecordedLaunch);
  // Rows of sequences without keys are filled behind AITER's kernels that leave them.
  const kernels::Traits& t = row.traits;
  const bool fills = t.kind == kernels::Kind::kFwdAsm && t.group_mode && !t.mask;
  ASSERT_EQ(calls.size(), fills ? 2u : 1u);
  launched->insert(launched_row(calls[0], device));
  expect_pointers(calls[0], {args.q.data, args.k.data, args.v.data, args.o.data});
  if (args.lse) expect_pointers(calls[0], {args.lse});
  if (row.traits.group_mode) expect_pointers(calls[0], {p.cu_seqlens_q, p.cu_seqlens_k});
  EXPECT_EQ(calls[0].stream, p.stream);
}

// Whether the build has a kernel of Composable Kernel's that goes with AITER's backward kernels.
bool has_companion(kernels::Kind kind, const attn_problem& p) {
  const LaunchTable& table = launch_table();
  for (uint32_t i = 0; i < table.row_count(); ++i) {
    const Row& row = table.row(i);
    const kernels::Traits& t = row.traits;
    if (t.kind != kind || static_cast<int32_t>(t.dtype) != p.dtype || t.deterministic ||
        t.group_mode != (p.mode == ATTN_MODE_GROUP)) {
      continue;
    }
    const bool padded = t.pad_head_size_qk || t.pad_head_size_v;
    if (padded ? p.head_size_qk <= t.head_size_qk : p.head_size_qk == t.head_size_qk) return true;
  }
  return false;
}

bool has_companions(const attn_problem& p) {
  return has_companion(kernels::Kind::kBwdDotDoO, p) &&
         has_companion(kernels::Kind::kBwdConvertDq, p);
}

void launch_backward(const attn_problem& p, int32_t device, std::set<const Row*>* launched) {
  std::vector<unsigned char> workspace;
  const attn_bwd_args args = bwd_args(p, &workspace);
  const Recorder recorder;
  ASSERT_EQ(attn_bwd(&args), ATTN_OK) << attn_last_error();
  const std::vector<RecordedCall> calls = recorder.of(kRecordedLaunch);
  std::vector<const Row*> rows;
  for (const RecordedCall& call : calls) rows.push_back(launched_row(call, device));
  launched->insert(rows.begin(), rows.end());
  // Kernels for few queries write dq themselves.
  ASSERT_GE(calls.size(), 4u);
  const bool writes_dq = rows[1] && rows[1]->traits.max_seqlen_q != 0;
  ASSERT_EQ(calls.size(), writes_dq ? 4u : 5u);
  expect_pointers(calls[0], {args.o.data, args.dout.data, args.workspace});
  expect_pointers(
      calls[1], {args.q.data, args.k.data, args.v.data, args.dout.data, args.lse, args.workspace});
  EXPECT_TRUE(holds_float(calls[1], p.softmax_scale));
  expect_pointers(calls[writes_dq ? 1 : 2], {args.dq.data});
  expect_pointers(calls[calls.size() - 2], {args.dk.data});
  expect_pointers(calls[calls.size() - 1], {args.dv.data});
}

// AITER's kernel for a head size, and for one that it pads.
void launch_asm_backward(const Row& row, int32_t device, std::set<const Row*>* launched) {
  attn_problem p = problem_for(row, device);
  for (const int32_t size : {p.head_size_qk, int32_t{row.traits.head_size_qk}}) {
    p.head_size_qk = p.head_size_v = size;
    if (has_companions(p)) launch_backward(p, device, launched);
  }
}

// Whether a problem of the C ABI can ask for the row: its traits but those are zero.
bool can_be_asked_for(const Row& row) {
  if (is_asm_backward(row.traits.kind)) return has_companions(problem_for(row, 0));
  // The other schedule is for devices of other compute units.
  if (is_asm(row)) return row.traits.schedule == kernels::Schedule::kMi300;
  if (row.traits.kind > kernels::Kind::kSumHeads) return false;  // directions of their own
  for (const kernels::TraitInfo& trait : kernels::kTraits) {
    const bool asked = trait.match != kernels::Match::kExact ||
                       trait.offset == offsetof(kernels::Traits, dtype) ||
                       trait.offset == offsetof(kernels::Traits, group_mode) ||
                       trait.offset == offsetof(kernels::Traits, mask) ||
                       trait.offset == offsetof(kernels::Traits, lse);
    if (!asked && trait.value(row.traits) != 0) return false;
  }
  return true;
}

bool is_of_other_archs(const Row& row, int32_t device) {
  const bool may_be = is_asm(row) || row.traits.transposed_loads;
  return may_be && !launch_table().object(row, device);
}

// Whether kernels with transposed loads serve all that the row does on the device's arch.
bool is_behind_transposed(const Row& row, int32_t device) {
  const LaunchTable& table = launch_table();
  const bool is_backward = row.traits.kind == kernels::Kind::kBwdDqDkDv;
  if (row.traits.kind != kernels::Kind::kFwd && !is_backward) return false;
  if (row.traits.transposed_loads) return false;
  for (const uint32_t index : table.rows(kernels::exact_key(row.traits))) {
    const Row& other = table.row(index);
    const kernels::Traits& t = other.traits;
    // Backward's of padded head sizes take vectors alone.
    const bool takes_sizes = is_backward ? !row.traits.pad_head_size_qk && !t.pad_head_size_qk
                                         : t.pad_head_size_qk && t.pad_head_size_v;
    if (t.transposed_loads && t.max_seqlen_q == 0 && t.max_seqlen_k == 0 && takes_sizes &&
        table.object(other, device)) {
      return true;
    }
  }
  return false;
}

// Forward rows and backward's main rows are asked for one by one; the others come along.
TEST(BuildTest, EveryRowCanBeLaunchedOnEveryArch) {
  const LaunchTable& table = launch_table();
  ASSERT_GT(table.row_count(), 0u);
  ASSERT_GT(table.arch_count(), 0u);
  std::string devices;
  for (uint32_t i = 0; i < table.arch_count(); ++i) {
    devices.append(i ? "," : "").append(table.arch(i));
  }
  const Environment archs("AITER_RECORDING_HIP_ARCHS", devices);
  for (int32_t device = 0; device < static_cast<int32_t>(table.arch_count()); ++device) {
    std::set<const Row*> launched;
    for (uint32_t i = 0; i < table.row_count(); ++i) {
      const Row& row = table.row(i);
      if (is_of_other_archs(row, device)) continue;
      EXPECT_NE(table.object(row, device), nullptr) << table.name(row);
      if (is_asm_backward(row.traits.kind)) launch_asm_backward(row, device, &launched);
      if (!can_be_asked_for(row)) continue;
      if (row.traits.kind == kernels::Kind::kFwd || row.traits.kind == kernels::Kind::kFwdAsm) {
        launch_forward(row, device, &launched);
      }
      if (row.traits.kind == kernels::Kind::kBwdDqDkDv) {
        launch_backward(problem_for(row, device), device, &launched);
      }
    }
    for (uint32_t i = 0; i < table.row_count(); ++i) {
      const Row& row = table.row(i);
      // There for both types, whichever the variant set has.
      if (row.traits.kind == kernels::Kind::kSumHeads || !can_be_asked_for(row)) continue;
      if (is_of_other_archs(row, device) || is_behind_transposed(row, device)) continue;
      // The masked row stands in for it: see passes/backward.
      if (row.traits.kind == kernels::Kind::kBwdDqDkDv && row.traits.group_mode &&
          !row.traits.mask) {
        continue;
      }
      EXPECT_TRUE(launched.count(&row)) << "nothing launches " << table.name(row);
    }
  }
}

// The question to a cache, a server or a compiler.
TEST(BuildTest, EveryKeyIsThatOfItsSpec) {
  const LaunchTable& table = launch_table();
  for (uint32_t i = 0; i < table.row_count(); ++i) {
    for (uint32_t arch = 0; arch < table.arch_count(); ++arch) {
      const kernels::CodeObjectRow* object = table.object(table.row(i), static_cast<int>(arch));
      if (!object) continue;
      const runtime::CodeObjectRef ref = attention::code_object_ref(table, *object);
      if (is_asm(table.row(i))) {  // it comes as an object
        EXPECT_FALSE(ref.spec);
        EXPECT_GT(runtime::embedded_size(ref.key), 0u) << table.name(table.row(i));
        continue;
      }
      ASSERT_TRUE(ref.spec) << table.name(table.row(i));
      const runtime::CodeObjectSpec spec = ref.spec();
      EXPECT_EQ(spec.key(), ref.key) << table.name(table.row(i));
      EXPECT_EQ(spec.arch, table.arch(arch));
      // The plain compile of a member of a compile group has a key of its own.
      ASSERT_EQ(static_cast<bool>(ref.plain), !spec.group.empty());
      if (ref.plain) {
        const runtime::CodeObjectRef plain = ref.plain();
        EXPECT_EQ(plain.key, spec.alone().key());
        EXPECT_NE(plain.key, ref.key);
        EXPECT_EQ(plain.spec().key(), plain.key);
        EXPECT_FALSE(plain.sha256);
        EXPECT_FALSE(plain.plain);
      }
      EXPECT_GT(runtime::embedded_size(spec.key()), 0u) << table.name(table.row(i));
    }
  }
}

TEST(BuildTest, EveryCodeObjectHasItsDigest) {
  for (uint32_t i = 0; i < attn_kernel_count(); ++i) {
    attn_kernel_info_t info = {};
    info.struct_size = sizeof(info);
    EXPECT_EQ(attn_kernel_info(i, &info), ATTN_OK);
    void* data = nullptr;
    uint64_t size = 0;
    EXPECT_EQ(attn_code_object(info.key, &data, &size), ATTN_OK);
    EXPECT_EQ(size, info.code_object_size);
    EXPECT_TRUE(info.embedded_size < info.code_object_size);
    attn_code_object_free(data);
  }
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::testing
