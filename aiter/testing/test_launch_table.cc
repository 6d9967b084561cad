// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/testing/test_launch_table.h"

#include <zstd.h>

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "aiter/store/sha256.h"
#include "aiter/testing/tiny_elf.h"

namespace aiter_attn::testing {
namespace {

constexpr const char* kArchs[] = {"gfx942", "gfx950"};

uint32_t tiles(int32_t length, uint16_t tile) { return (length + tile - 1) / tile; }

template <typename Kernarg>
void store(const Kernarg& kernarg, uint32_t x, uint32_t y, uint32_t z, KernelLaunch* launch) {
  static_assert(sizeof(kernarg) <= sizeof(launch->kernarg));
  launch->grid[0] = x, launch->grid[1] = y, launch->grid[2] = z;
  launch->kernarg_size = sizeof(kernarg);
  std::memcpy(launch->kernarg, &kernarg, sizeof(kernarg));
}

void make_fwd(const attn_fwd_args& args, KernelLaunch* launch) {
  const attn_problem& p = args.problem;
  store(args, p.heads_q, tiles(p.seqlen_q, 128), p.batch, launch);
}

void make_bwd_by_query(const attn_bwd_args& args, const BwdBuffers& buffers, KernelLaunch* launch) {
  const attn_problem& p = args.problem;
  store(TestBwdKernarg{args, buffers}, tiles(p.seqlen_q, 64), p.heads_q, p.batch, launch);
}

void make_bwd_by_key(const attn_bwd_args& args, const BwdBuffers& buffers, KernelLaunch* launch) {
  const attn_problem& p = args.problem;
  store(TestBwdKernarg{args, buffers}, tiles(p.seqlen_k, 128), p.heads_q, p.batch, launch);
}

class Table {
 public:
  Table() {
    for (attn_dtype dtype : {ATTN_DTYPE_FP16, ATTN_DTYPE_BF16}) {
      for (uint16_t size : {64, 128}) {
        for (bool group : {false, true}) add_forward(dtype, size, group);
      }
    }
    for (Kind kind : {Kind::kBwdDotDoO, Kind::kBwdDqDkDv, Kind::kBwdConvertDq}) {
      for (attn_dtype dtype : {ATTN_DTYPE_FP16, ATTN_DTYPE_BF16}) {
        for (uint16_t size : {64, 128}) {
          for (bool group : {false, true}) add_backward(kind, dtype, size, group);
        }
      }
    }
    for (attn_dtype dtype : {ATTN_DTYPE_FP16, ATTN_DTYPE_BF16}) add_sum_heads(dtype);
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i].code_objects = objects_[i].data();
    table_ = {rows_.data(), static_cast<uint32_t>(rows_.size()), kArchs, 2, "test"};
  }
  const LaunchTable& get() const { return table_; }

 private:
  void add_forward(attn_dtype dtype, uint16_t size, bool group) {
    for (bool mask : {true, false}) {
      for (bool pad_k : {false, true}) {
        if (group && !pad_k) continue;
        Instance row = {};
        row.traits.kind = Kind::kFwd;
        row.traits.dtype = dtype;
        row.traits.head_size_qk = row.traits.head_size_v = size;
        row.traits.group_mode = group;
        row.traits.mask = mask;
        row.traits.lse = true;
        row.traits.pad_seqlen_q = row.traits.pad_head_size_qk = row.traits.pad_head_size_v = true;
        row.traits.pad_seqlen_k = pad_k;
        row.tile_seqlen_q = 128;
        row.tile_seqlen_k = size == 64 ? 64 : 128;
        row.tile_head_size_qk = row.tile_head_size_v = size;
        row.head_size_alignment = 8;
        row.block_size = 256;
        row.make_fwd = make_fwd;
        add(row, base_name("fwd", row.traits) + (mask ? "_mask" : "_nmask") +
                     (pad_k ? "_psk" : "_npad"));
      }
    }
  }

  void add_backward(Kind kind, attn_dtype dtype, uint16_t size, bool group) {
    for (bool mask : {true, false}) {
      if (mask && kind != Kind::kBwdDqDkDv) continue;
      for (bool pad_head : {true, false}) {
        if (pad_head && size == 64) continue;
        Instance row = {};
        row.traits.kind = kind;
        row.traits.dtype = dtype;
        row.traits.head_size_qk = row.traits.head_size_v = size;
        row.traits.group_mode = group;
        row.traits.mask = mask;
        row.traits.pad_seqlen_q = true;
        row.traits.pad_seqlen_k = kind == Kind::kBwdDqDkDv;
        row.traits.pad_head_size_qk = pad_head && kind != Kind::kBwdDotDoO;
        row.traits.pad_head_size_v = pad_head && kind != Kind::kBwdConvertDq;
        row.tile_seqlen_q = kind != Kind::kBwdDqDkDv ? 64 : size == 64 ? 32 : 16;
        row.tile_seqlen_k = kind == Kind::kBwdDotDoO ? 0 : 128;
        row.tile_head_size_qk = kind == Kind::kBwdDotDoO ? 0 : size;
        row.tile_head_size_v = kind == Kind::kBwdConvertDq ? 0 : size;
        row.head_size_alignment = 1;
        row.block_size = kind == Kind::kBwdDotDoO ? 64 : 256;
        row.make_bwd = kind == Kind::kBwdDqDkDv ? make_bwd_by_key : make_bwd_by_query;
        const char* kinds[] = {"", "dot_do_o", "dq_dk_dv", "convert_dq"};
        add(row, base_name(kinds[static_cast<int>(kind)], row.traits) +
                     (kind != Kind::kBwdDqDkDv ? ""
                      : mask                   ? "_mask"
                                               : "_nmask") +
                     (pad_head ? "_pd" : ""));
      }
    }
  }

  void add_sum_heads(attn_dtype dtype) {
    Instance row = {};
    row.traits.kind = Kind::kSumHeads;
    row.traits.dtype = dtype;
    row.head_size_alignment = 1;
    row.block_size = 256;
    add(row, dtype == ATTN_DTYPE_FP16 ? "attn_sum_heads_fp16" : "attn_sum_heads_bf16");
  }

  static std::string base_name(const char* kind, const Traits& t) {
    return std::string(kind) + "_d" + std::to_string(t.head_size_qk) +
           (t.dtype == ATTN_DTYPE_FP16 ? "_fp16" : "_bf16") + (t.group_mode ? "_group" : "_batch");
  }

  void add(Instance row, const std::string& name) {
    row.name = row.symbol = keep(name);
    std::vector<CodeObject> objects;
    for (const char* arch : kArchs) {
      const Traits& t = row.traits;
      const bool absent = t.kind == Kind::kFwd && t.group_mode && t.head_size_qk == 128;
      if (absent && std::strcmp(arch, "gfx950") == 0) continue;
      objects.push_back(make_object(name, arch));
    }
    row.code_object_count = static_cast<uint32_t>(objects.size());
    objects_.push_back(std::move(objects));
    rows_.push_back(row);
  }

  CodeObject make_object(const std::string& name, const char* arch) {
    const std::vector<unsigned char> image = tiny_code_object(name, arch);
    std::vector<unsigned char> packed(ZSTD_compressBound(image.size()));
    packed.resize(ZSTD_compress(packed.data(), packed.size(), image.data(), image.size(), 3));
    const std::string identity = name + arch;
    CodeObject object = {};
    object.arch = arch;
    object.key = keep(sha256_hex(identity.data(), identity.size()));
    object.sha256 = keep(sha256_hex(image.data(), name == kCorruptName ? 1 : image.size()));
    object.size = image.size();
    packed_.push_back(std::move(packed));
    object.packed = packed_.back().data();
    object.packed_size = packed_.back().size();
    return object;
  }

  const char* keep(const std::string& text) {
    strings_.push_back(text);
    return strings_.back().c_str();
  }

  // Deques: what rows point to must not move.
  std::deque<std::string> strings_;
  std::deque<std::vector<unsigned char>> packed_;
  std::deque<std::vector<CodeObject>> objects_;
  std::vector<Instance> rows_;
  LaunchTable table_;
};

}  // namespace

const Instance* find_instance(const char* name) {
  const LaunchTable& table = launch_table();
  for (uint32_t i = 0; i < table.instance_count; ++i) {
    if (std::strcmp(table.instances[i].name, name) == 0) return &table.instances[i];
  }
  return nullptr;
}

}  // namespace aiter_attn::testing

namespace aiter_attn {

const LaunchTable& launch_table() {
  static const testing::Table* const table = new testing::Table;
  return table->get();
}

}  // namespace aiter_attn
