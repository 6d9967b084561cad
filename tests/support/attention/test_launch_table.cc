// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "tests/support/attention/test_launch_table.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <vector>

#include "aiter/runtime/store/digest.h"
#include "kernels/code_object/embedded_pack.h"
#include "tests/support/attention/table_builder.h"
#include "tests/support/runtime/pack.h"
#include "tests/support/runtime/tiny_elf.h"

namespace AITER_ATTN_NAMESPACE::testing {
namespace {

using kernels::Bias;
using kernels::Dtype;
using kernels::Kind;
using kernels::Launch;
using kernels::LaunchArgs;
using kernels::Rotary;
using kernels::Row;
using kernels::Traits;

// Work-items per workgroup, as if waves were half as wide on the second arch.
uint16_t block_of(Kind kind, std::string_view arch) {
  const uint16_t wide = kind == Kind::kBwdDotDoO ? 64 : 256;
  return arch == kTestArchs[0] ? wide : wide / 2;
}

uint32_t tiles(int32_t length, uint16_t tile) { return (length + tile - 1) / tile; }

void store(const LaunchArgs& args, uint32_t x, uint32_t y, uint32_t z, Launch* launch) {
  launch->grid[0] = x, launch->grid[1] = y, launch->grid[2] = z;
  launch->kernarg_size = sizeof(args);
  std::memcpy(launch->kernarg, &args, sizeof(args));
}

void make_fwd(const LaunchArgs& args, Launch* launch) {
  const attn_problem& p = args.problem;
  store(args, p.heads_q, tiles(p.seqlen_q, 128), p.batch, launch);
}

void make_bwd_by_query(const LaunchArgs& args, Launch* launch) {
  const attn_problem& p = args.problem;
  store(args, tiles(p.seqlen_q, 64), p.heads_q, p.batch, launch);
}

void make_bwd_by_key(const LaunchArgs& args, Launch* launch) {
  const attn_problem& p = args.problem;
  store(args, tiles(p.seqlen_k, 128), p.heads_q, p.batch, launch);
  launch->dynamic_lds = 512;
}

void make_sum_heads(const LaunchArgs& args, Launch* launch) { store(args, 7, 1, 1, launch); }

void make_dropout_mask(const LaunchArgs& args, Launch* launch) { store(args, 5, 2, 1, launch); }

void make_sink(const LaunchArgs& args, Launch* launch) { store(args, 3, 4, 1, launch); }

void make_sink_grad(const LaunchArgs& args, Launch* launch) {
  store(args, args.problem.heads_q, 1, 1, launch);
}

void make_splitkv(const LaunchArgs& args, Launch* launch) {
  const attn_problem& p = args.problem;
  store(args, tiles(p.seqlen_q, 64) * args.features.splits, p.heads_q, p.batch, launch);
}

void make_combine(const LaunchArgs& args, Launch* launch) {
  const attn_problem& p = args.problem;
  store(args, tiles(p.seqlen_q, 32), p.heads_q, p.batch, launch);
}

void make_append(const LaunchArgs& args, Launch* launch) {
  const attn_problem& p = args.problem;
  const uint32_t longest = std::max(tiles(p.seqlen_q, 64), tiles(args.features.seqlen_new, 64));
  store(args, longest, p.heads_q, p.batch, launch);
}

runtime::Digest digest_of(const std::string& text) {
  return runtime::sha256(text.data(), text.size());
}

struct Feature {
  const char* suffix;
  void (*set)(Traits*);
  bool group_mode = false;  // only there
};

constexpr Feature kForwardFeatures[] = {
    {"_bias", [](Traits* t) { t->bias = Bias::kElementwise; }},
    {"_alibi", [](Traits* t) { t->bias = Bias::kAlibi; }},
    {"_dropout", [](Traits* t) { t->dropout = true; }},
    {"_cap", [](Traits* t) { t->logits_soft_cap = true; }},
    {"_skip", [](Traits* t) { t->skip_min_seqlen_q = true; }, true},
};

constexpr Feature kBackwardFeatures[] = {
    {"_bias", [](Traits* t) { t->bias = Bias::kElementwise, t->bias_grad = true; }},
    {"_alibi", [](Traits* t) { t->bias = Bias::kAlibi; }},
    {"_dropout", [](Traits* t) { t->dropout = true; }},
    {"_det", [](Traits* t) { t->deterministic = true; }},
};

class Table {
 public:
  Table() {
    for (const Dtype dtype : {Dtype::kFp16, Dtype::kBf16}) {
      for (const uint16_t size : {64, 128}) {
        for (const bool group : {false, true}) add_forward(dtype, size, group);
      }
    }
    add_fp8_forward();
    for (const Kind kind : {Kind::kBwdDotDoO, Kind::kBwdDqDkDv, Kind::kBwdConvertDq}) {
      for (const Dtype dtype : {Dtype::kFp16, Dtype::kBf16}) {
        for (const uint16_t size : {64, 128}) {
          for (const bool group : {false, true}) add_backward(kind, dtype, size, group);
        }
      }
    }
    for (const Dtype dtype : {Dtype::kFp16, Dtype::kBf16}) add_sum_heads(dtype);
    add_dropout_mask();
    for (const uint16_t size : {64, 128}) {
      for (const bool group : {false, true}) add_split(size, group);
    }
    for (const uint16_t size : {64, 128}) {
      for (const bool group : {false, true}) add_combine(size, group);
    }
    for (const bool group : {false, true}) add_paged(group);
    for (const uint16_t size : {64, 128}) {
      for (const bool paged : {false, true}) add_append(size, paged);
    }
    for (const bool mask : {true, false}) add_prefill(mask);
    for (const Dtype dtype : {Dtype::kFp16, Dtype::kBf16}) add_sink(dtype);
    add_sink_grad();
  }
  kernels::LaunchTable table() { return builder_.build("test"); }
  std::vector<unsigned char> pack() const { return make_pack(images_); }

 private:
  void add_forward(Dtype dtype, uint16_t size, bool group) {
    for (const bool mask : {true, false}) {
      for (const bool pad_k : {false, true}) {
        if (group && !pad_k) continue;
        Row row = base_row(Kind::kFwd, dtype, size, group);
        row.traits.mask = mask;
        row.traits.lse = true;
        row.traits.pad_head_size_qk = row.traits.pad_head_size_v = true;
        row.traits.pad_seqlen_k = pad_k;
        row.tile_seqlen_q = 128;
        row.tile_seqlen_k = size == 64 ? 64 : 128;
        row.tile_head_size_qk = row.tile_head_size_v = size;
        row.head_size_alignment = 8;
        const std::string name =
            base_name("fwd", row.traits) + (mask ? "_mask" : "_nmask") + (pad_k ? "_psk" : "_npad");
        add(name, row, make_fwd, /*on_both=*/!(group && size == 128));
        if (dtype != Dtype::kFp16 || size != 64 || !pad_k) continue;
        for (const Feature& feature : kForwardFeatures) {
          if (feature.group_mode && !group) continue;
          Row with = row;
          feature.set(&with.traits);
          add(name + feature.suffix, with, make_fwd);
        }
      }
    }
  }

  void add_fp8_forward() {
    for (const Dtype dtype : {Dtype::kFp8, Dtype::kFp8bf16, Dtype::kFp8fp32}) {
      Row row = base_row(Kind::kFwd, dtype, 64, false);
      row.traits.pad_seqlen_q = row.traits.pad_seqlen_k = dtype != Dtype::kFp8;
      row.tile_seqlen_q = 128;
      row.tile_seqlen_k = row.tile_head_size_qk = row.tile_head_size_v = 64;
      const char* const padding = dtype == Dtype::kFp8 ? "_npad" : "_psk";
      add(base_name("fwd", row.traits) + "_nmask" + padding, row, make_fwd);
    }
  }

  void add_backward(Kind kind, Dtype dtype, uint16_t size, bool group) {
    const bool main = kind == Kind::kBwdDqDkDv;
    for (const bool mask : {true, false}) {
      if (mask && !main) continue;
      for (const bool pad_head : {true, false}) {
        if (pad_head && size == 64) continue;
        Row row = base_row(kind, dtype, size, group);
        row.traits.mask = mask;
        if (main) row.traits.pad_seqlen_q = false, row.traits.head_size_step = 1;
        row.traits.pad_head_size_qk = pad_head && kind != Kind::kBwdDotDoO;
        row.traits.pad_head_size_v = pad_head && kind != Kind::kBwdConvertDq;
        row.tile_seqlen_q = !main ? 64 : size == 64 ? 32 : 16;
        row.tile_seqlen_k = kind == Kind::kBwdDotDoO ? 0 : 128;
        row.tile_head_size_qk = kind == Kind::kBwdDotDoO ? 0 : size;
        row.tile_head_size_v = kind == Kind::kBwdConvertDq ? 0 : size;
        const std::string prefix = std::string(name_of(kind)).substr(4);  // without bwd_
        const std::string mask_text = !main ? "" : mask ? "_mask" : "_nmask";
        const std::string name =
            base_name(prefix, row.traits) + mask_text + (pad_head ? "_pd" : "");
        const kernels::MakeLaunch launch = main ? make_bwd_by_key : make_bwd_by_query;
        add(name, row, launch);
        if (dtype != Dtype::kFp16 || size != 64 || kind == Kind::kBwdDotDoO) continue;
        for (const Feature& feature : kBackwardFeatures) {
          Row with = row;
          feature.set(&with.traits);
          if (!main && !with.traits.deterministic) continue;
          add(name + feature.suffix, with, launch);
        }
      }
    }
  }

  void add_sum_heads(Dtype dtype) {
    Row row = base_row(Kind::kSumHeads, dtype, 0, false);
    row.traits.pad_seqlen_q = false;
    add(std::string("attn_sum_heads_") + name_of(dtype), row, make_sum_heads);
  }

  void add_dropout_mask() {
    Row row = base_row(Kind::kDropoutMask, Dtype{}, 0, false);
    row.traits.pad_seqlen_q = false;
    add("attn_dropout_mask_u8", row, make_dropout_mask);
  }

  void add_sink(Dtype dtype) {
    Row row = base_row(Kind::kSink, dtype, 0, false);
    row.traits.pad_seqlen_q = false;
    add(std::string("attn_sink_") + name_of(dtype), row, make_sink);
  }

  void add_sink_grad() {
    Row row = base_row(Kind::kSinkGrad, Dtype{}, 0, false);
    row.traits.pad_seqlen_q = false;
    add("attn_sink_grad", row, make_sink_grad);
  }

  void add_split(uint16_t size, bool group) {
    for (const bool paged : {false, true}) {
      for (const bool mask : {true, false}) {
        for (const bool pad_k : {false, true}) {
          for (const bool pad_head : {false, true}) {
            if (!pad_k && (group || pad_head)) continue;
            Row row = base_row(Kind::kFwdSplitkv, Dtype::kFp16, size, group);
            row.traits.mask = mask;
            row.traits.paged_kv = paged;
            row.traits.pad_seqlen_k = pad_k;
            row.traits.pad_head_size_qk = row.traits.pad_head_size_v = pad_head;
            row.tile_seqlen_q = 64;
            row.tile_seqlen_k = row.tile_head_size_qk = row.tile_head_size_v = size;
            add(base_name("fwd_splitkv", row.traits) + (mask ? "_mask" : "_nmask") +
                    (paged ? "_paged" : "") + (pad_k ? "_psk" : "_npad") + (pad_head ? "_pd" : ""),
                row, make_splitkv);
          }
        }
      }
    }
  }

  void add_combine(uint16_t size, bool group) {
    for (const bool lse : {true, false}) {
      for (const bool pad_head : {false, true}) {
        Row row = base_row(Kind::kFwdSplitkvCombine, Dtype::kFp16, size, group);
        row.traits.lse = lse;
        row.traits.pad_head_size_v = pad_head;
        row.tile_seqlen_q = 32;
        add(base_name("combine", row.traits) + (lse ? "_lse" : "_nlse") + (pad_head ? "_pd" : ""),
            row, make_combine);
      }
    }
  }

  void add_paged(bool group) {
    for (const bool mask : {true, false}) {
      for (const bool skip : {true, false}) {
        Row row = base_row(Kind::kFwdPagedkv, Dtype::kFp16, 128, group);
        row.traits.mask = mask;
        row.traits.skip_min_seqlen_q = skip;
        row.traits.paged_kv = true;
        row.traits.pad_seqlen_k = true;
        row.tile_seqlen_q = row.tile_seqlen_k = 128;
        row.tile_head_size_qk = row.tile_head_size_v = 128;
        add(base_name("fwd_pagedkv", row.traits) + (mask ? "_mask" : "_nmask") +
                (skip ? "_skip" : ""),
            row, make_fwd);
      }
    }
  }

  void add_append(uint16_t size, bool paged) {
    for (const Rotary rotary : {Rotary::kNone, Rotary::kHalves, Rotary::kInterleaved}) {
      for (const bool pad : {false, true}) {
        Row row = base_row(Kind::kFwdAppendkv, Dtype::kFp16, size, false);
        row.traits.paged_kv = paged;
        row.traits.rotary = rotary;
        row.traits.pad_seqlen_q = row.traits.pad_head_size_v = pad;
        row.traits.pad_seqlen_k = true;
        row.traits.pad_head_size_qk = pad || rotary != Rotary::kNone;
        row.tile_seqlen_q = row.tile_seqlen_k = 64;
        row.tile_head_size_qk = row.tile_head_size_v = size;
        add("append_d" + std::to_string(size) + "_fp16" + (paged ? "_paged" : "") +
                (rotary == Rotary::kNone ? "" : std::string("_") + name_of(rotary)) +
                (pad ? "_pad" : ""),
            row, make_append);
      }
    }
  }

  void add_prefill(bool mask) {
    Row row = base_row(Kind::kFwdBatchPrefill, Dtype::kFp16, 128, true);
    row.traits.mask = mask;
    row.traits.lse = true;
    row.traits.pad_seqlen_k = true;
    row.traits.pad_head_size_qk = row.traits.pad_head_size_v = true;
    row.tile_seqlen_q = row.tile_seqlen_k = 128;
    row.tile_head_size_qk = row.tile_head_size_v = 128;
    row.head_size_alignment = 8;
    add(base_name("batch_prefill", row.traits) + (mask ? "_mask" : "_nmask"), row, make_fwd);
  }

  static Row base_row(Kind kind, Dtype dtype, uint16_t size, bool group) {
    Row row = {};
    row.kernarg_size = sizeof(TestKernarg);
    row.head_size_alignment = 1;
    row.traits.kind = kind;
    row.traits.dtype = dtype;
    row.traits.head_size_qk = row.traits.head_size_v = size;
    row.traits.group_mode = group;
    row.traits.pad_seqlen_q = true;
    return row;
  }

  static std::string base_name(const std::string& kind, const Traits& t) {
    return kind + "_d" + std::to_string(t.head_size_qk) + "_" + name_of(t.dtype) +
           (t.group_mode ? "_group" : "_batch");
  }

  void add(const std::string& name, const Row& row, kernels::MakeLaunch launch,
           bool on_both = true) {
    std::vector<kernels::CodeObjectRow> objects;
    for (const char* arch : kTestArchs) {
      objects.push_back({});
      if (!on_both && std::string_view(arch) != kTestArchs[0]) continue;
      runtime::Bytes image = tiny_code_object(name, arch);
      const runtime::Digest key = digest_of(name + arch);
      const runtime::Digest digest = runtime::sha256(image.data(), image.size());
      std::copy(key.begin(), key.end(), objects.back().key);
      std::copy(digest.begin(), digest.end(), objects.back().sha256);
      objects.back().size = image.size();
      objects.back().block[0] = block_of(row.traits.kind, arch);
      objects.back().block[1] = objects.back().block[2] = 1;
      if (name == kCorruptName) image[0] ^= 1;
      images_.emplace(key, std::move(image));
    }
    builder_.add(name, row, launch, objects);
  }

  TableBuilder builder_{{std::begin(kTestArchs), std::end(kTestArchs)}};
  std::map<runtime::Digest, runtime::Bytes> images_;
};

Table& table() {
  static Table* const table = new Table;
  return *table;
}

std::vector<unsigned char> pack_without_rows() {
  const std::string_view object = kObjectWithoutRow;
  const auto key = runtime::parse_hex(kKeyWithoutRow);
  if (!key) std::abort();
  return make_pack({{*key, {object.begin(), object.end()}}});
}

}  // namespace

const char kKeyWithoutRow[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

const Row& test_row(std::string_view name) {
  const kernels::LaunchTable& table = kernels::launch_table();
  for (uint32_t i = 0; i < table.row_count(); ++i) {
    if (table.name(table.row(i)) == name) return table.row(i);
  }
  throw std::logic_error("the test table has no " + std::string(name));
}

std::string test_key(std::string_view name, std::string_view arch) {
  return runtime::hex(digest_of(std::string(name).append(arch)));
}

}  // namespace AITER_ATTN_NAMESPACE::testing

namespace AITER_ATTN_NAMESPACE::kernels {

const LaunchTable& launch_table() {
  static const LaunchTable table = testing::table().table();
  return table;
}

std::vector<EmbeddedPack> embedded_packs() {
  static const auto* const packs = new std::vector<std::vector<unsigned char>>{
      testing::table().pack(), testing::pack_without_rows()};
  return {{(*packs)[0].data(), (*packs)[0].size()}, {(*packs)[1].data(), (*packs)[1].size()}};
}

}  // namespace AITER_ATTN_NAMESPACE::kernels
