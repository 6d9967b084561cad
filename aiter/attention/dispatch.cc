// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/dispatch.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "aiter/attention/splits.h"
#include "kernels/archs/archs.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using kernels::Kind;
using kernels::kTraits;
using kernels::LaunchTable;
using kernels::Match;
using kernels::Row;
using kernels::TraitInfo;
using kernels::Traits;

bool is_multiple(int32_t value, uint16_t tile) { return tile == 0 || value % tile == 0; }

constexpr bool has_trait(Kind kind, size_t offset) {
  for (const TraitInfo& trait : kTraits) {
    if (trait.offset == offset) return trait.of(kind);
  }
  return false;
}

constexpr bool reads_keys(Kind kind) { return has_trait(kind, offsetof(Traits, pad_seqlen_k)); }

// Whether the keys fill the instance's tiles. Upstream's forward kernels need at least one tile.
bool keys_fill_tiles(const Row& row, const Request& request) {
  if (request.seqlen_k == 0 && row.traits.kind == Kind::kFwd) return false;
  if (request.lengths_on_device) return false;
  return is_multiple(request.seqlen_k, row.tile_seqlen_k);
}

// Bounds checks that the instance makes and the request does not need.
int unneeded_checks(const Row& row, const Request& request) {
  const Traits& traits = row.traits;
  int count = 0;
  count += traits.pad_seqlen_q && is_multiple(request.seqlen_q, row.tile_seqlen_q);
  count += traits.pad_seqlen_k && keys_fill_tiles(row, request);
  count += traits.pad_head_size_qk && is_multiple(request.head_size_qk, row.tile_head_size_qk);
  count += traits.pad_head_size_v && is_multiple(request.head_size_v, row.tile_head_size_v);
  return count;
}

bool serves_head_size(int32_t head_size, bool padded, uint16_t tile, uint16_t alignment) {
  return is_multiple(head_size, padded ? alignment : tile);
}

// Upstream's kernels find a tile of keys by one entry of the block table. What appends writes a
// tile of new keys to the page where it begins and to the next one.
bool suits_pages(const Row& row, const Request& request) {
  if (!row.traits.paged_kv) return true;
  if (row.traits.kind != Kind::kFwdAppendkv) {
    return is_multiple(request.page_size, row.tile_seqlen_k);
  }
  const int64_t keys = std::min<int64_t>(request.seqlen_new, row.tile_seqlen_k);
  return keys <= int64_t{request.page_size} + 1;
}

// Why an instance that has the request's exact traits does not serve it.
Mismatch::Reason shape_mismatch(const Row& row, const Request& request) {
  const Traits& traits = row.traits;
  // In group mode every instance checks bounds: the lengths are known on the device only.
  if (!request.traits.group_mode) {
    if (!traits.pad_seqlen_q && !is_multiple(request.seqlen_q, row.tile_seqlen_q)) {
      return Mismatch::kSeqlen;
    }
    if (!traits.pad_seqlen_k && reads_keys(traits.kind) && !keys_fill_tiles(row, request)) {
      return Mismatch::kSeqlen;
    }
  }
  if (!suits_pages(row, request)) return Mismatch::kPageSize;
  if (!serves_head_size(request.head_size_qk, traits.pad_head_size_qk, row.tile_head_size_qk,
                        row.head_size_alignment) ||
      !serves_head_size(request.head_size_v, traits.pad_head_size_v, row.tile_head_size_v,
                        row.head_size_alignment)) {
    return Mismatch::kAlignment;
  }
  return Mismatch::kNone;
}

bool is_for(const LaunchTable& table, const Row& row, int arch) {
  return arch >= 0 && table.object(row, arch);
}

// The key of the instances of a kind that have the request's exact traits, in one bucket.
uint64_t key_of(const Request& request, Kind kind, uint16_t head_size_qk, uint16_t head_size_v) {
  Traits traits = request.traits;
  traits.kind = kind;
  traits.head_size_qk = head_size_qk;
  traits.head_size_v = head_size_v;
  for (const TraitInfo& trait : kTraits) {
    if (!trait.of(kind))
      std::memset(reinterpret_cast<char*>(&traits) + trait.offset, 0, trait.size);
  }
  return kernels::exact_key(traits);
}

// What combines parts must check the bounds that the kernel which made them does: upstream has the
// one for the other, and the tiles of the first say nothing of the head size.
bool goes_with(const Row& row, const Row* parts) {
  if (row.traits.kind != Kind::kFwdSplitkvCombine) return true;
  return parts && row.traits.pad_seqlen_q == parts->traits.pad_seqlen_q &&
         row.traits.pad_head_size_v == parts->traits.pad_head_size_v;
}

// before: what was picked for the step before.
const Row* pick(const LaunchTable& table, Kind kind, uint16_t head_size_qk, uint16_t head_size_v,
                const Request& request, int arch, const Row* before = nullptr) {
  const Row* best = nullptr;
  int least = 0;
  for (const uint32_t index : table.rows(key_of(request, kind, head_size_qk, head_size_v))) {
    const Row& row = table.row(index);
    if (shape_mismatch(row, request) != Mismatch::kNone) continue;
    if (!is_for(table, row, arch)) continue;
    if (!goes_with(row, before)) continue;
    const int unneeded = unneeded_checks(row, request);
    if (!best || unneeded < least) {
      best = &row;
      least = unneeded;
    }
  }
  return best;
}

// The kernels of one way to compute something, in the order of their launches; of all of them there
// are the same buckets.
struct Pass {
  Kind main;
  Kind kinds[3];
  size_t count;
};
constexpr Pass kForward = {Kind::kFwd, {Kind::kFwd}, 1};
constexpr Pass kBackward = {
    Kind::kBwdDqDkDv, {Kind::kBwdDotDoO, Kind::kBwdDqDkDv, Kind::kBwdConvertDq}, 3};
constexpr Pass kSplitKeys = {Kind::kFwdSplitkv, {Kind::kFwdSplitkv, Kind::kFwdSplitkvCombine}, 2};
constexpr Pass kAppend = {Kind::kFwdAppendkv, {Kind::kFwdAppendkv}, 1};
constexpr Pass kPageList = {Kind::kFwdBatchPrefill, {Kind::kFwdBatchPrefill}, 1};
constexpr Pass kPagedKeys = {Kind::kFwdPagedkv, {Kind::kFwdPagedkv}, 1};

Plan plan_pass(const LaunchTable& table, const Pass& pass, const Request& request) {
  const int arch = table.find_arch(request.arch);
  Plan plan;
  plan.main = pass.main;
  for (size_t i = 0; i < pass.count; ++i) plan.add(pass.kinds[i], nullptr);
  for (const kernels::Bucket& bucket : table.buckets(pass.main, request.traits.dtype)) {
    if (request.head_size_qk > bucket.head_size_qk) continue;
    if (request.head_size_v > bucket.head_size_v) continue;
    const Row* before = nullptr;
    for (size_t i = 0; i < pass.count; ++i) {
      before = pick(table, pass.kinds[i], bucket.head_size_qk, bucket.head_size_v, request, arch,
                    before);
      plan.steps[i].row = before;
    }
    if (plan.is_complete()) break;
  }
  return plan;
}

Plan plan_forward(const LaunchTable& table, Request request) {
  const Plan plan = plan_pass(table, kForward, request);
  if (plan.is_complete() || !request.spare_lse) return plan;
  request.traits.lse = true;
  Plan with_lse = plan_pass(table, kForward, request);
  with_lse.spare_lse = true;
  return with_lse.is_complete() ? with_lse : plan;
}

Plan plan_backward(const LaunchTable& table, const Request& request) {
  Plan plan = plan_pass(table, kBackward, request);
  const int sums = (request.sum_heads ? 2 : 0) + (request.sum_bias ? 1 : 0);
  if (sums != 0) {
    // It knows nothing of sequences, nor of the size of a head.
    const Row* const sum_heads =
        pick(table, Kind::kSumHeads, 0, 0, request, table.find_arch(request.arch));
    for (int i = 0; i < sums; ++i) plan.add(Kind::kSumHeads, sum_heads);
  }
  return plan;
}

// There is one, for all dtypes and head sizes.
Plan plan_mask(const LaunchTable& table, const Request& request) {
  Plan plan;
  plan.main = Kind::kDropoutMask;
  plan.add(plan.main, pick(table, plan.main, 0, 0, request, table.find_arch(request.arch)));
  return plan;
}

int64_t tiles(int64_t length, uint16_t tile) { return tile == 0 ? 1 : (length + tile - 1) / tile; }

// As many as the caller asks for, or as fill the GPU.
int32_t splits_for(const Row& row, const Request& request) {
  if (request.splits != 0) return request.splits;
  // In group mode few sequences may be long.
  const int64_t tiles_of_queries =
      std::min(request.batch * tiles(request.seqlen_q, row.tile_seqlen_q),
               request.batch + tiles(request.query_rows, row.tile_seqlen_q));
  constexpr int64_t kMany = 1 << 30;  // more than any GPU runs at a time
  const kernels::ArchFacts* const arch = kernels::find_arch(request.arch);
  return choose_splits(std::min(tiles_of_queries, kMany) * request.heads_q,
                       tiles(request.seqlen_k, row.tile_seqlen_k), arch ? arch->compute_units : 0);
}

// In pages what is not split is computed by a kernel of its own, in one launch, where there is one:
// it has no lse. It alone leaves sequences out.
Plan plan_over_cache(const LaunchTable& table, const Request& request) {
  if (request.page_list) return plan_pass(table, kPageList, request);
  const Plan paged = plan_pass(table, kPagedKeys, request);
  if (request.traits.skip_min_seqlen_q) return paged;
  Plan split = plan_pass(table, kSplitKeys, request);
  if (const Row* const parts = split.main_row()) split.splits = splits_for(*parts, request);
  const bool is_split = split.is_complete() ? split.splits > 1 : request.splits > 1;
  return paged.is_complete() && !is_split ? paged : split;
}

}  // namespace

// Upstream's unmasked backward kernels have no early exit: where a sequence has keys but no
// queries, they read and add outside of their buffers (block_fmha_bwd_dq_dk_dv_pipeline_*.hpp,
// "check early exit"). In group mode the lengths are known on the device only, so the masked
// kernels, which do exit, serve every problem there: no mask is a mask whose windows are open.
//
// fp8 is one dtype of the table: the kernels for an arch compute with the arch's own format.
Request make_request(const Problem& p, std::string_view arch) {
  const bool backward = is_backward(p);
  Request request = {};
  request.direction = p.direction;
  request.traits.dtype =
      is_fp8(p.dtype) ? kernels::Dtype::kFp8 : static_cast<kernels::Dtype>(p.dtype);
  request.traits.group_mode = is_group(p);
  request.traits.mask = p.mask != ATTN_MASK_NONE || (backward && is_group(p));
  request.traits.lse = p.lse != nullptr;
  request.traits.bias = static_cast<kernels::Bias>(p.bias);
  request.traits.bias_grad = p.bias_grad;
  request.traits.dropout = p.dropout_p > 0;
  request.traits.logits_soft_cap = p.logits_soft_cap > 0;
  request.traits.skip_min_seqlen_q = p.min_seqlen_q > 0;
  request.traits.deterministic = p.deterministic;
  request.traits.paged_kv = in_pages(p);
  request.head_size_qk = p.head_size_qk;
  request.head_size_v = p.head_size_v;
  request.seqlen_q = p.seqlen_q;
  request.seqlen_k = p.seqlen_k;
  if (is_append(p)) {
    request.traits.rotary = static_cast<kernels::Rotary>(p.rotary);
    request.seqlen_new = p.seqlen_new;
    if (!has_rotary(p)) request.seqlen_q = 0;  // queries are not touched
  }
  request.spare_lse = p.spare_lse;
  request.sum_heads = backward && p.heads_q != p.heads_k;
  request.sum_bias = p.dbias_sums != 0;
  request.splits = p.splits;
  request.page_size = p.cache.page_size;
  request.page_list = in_pages(p) && in_page_list(p);
  request.lengths_on_device = p.cache.seqlens_k != nullptr;
  request.batch = p.batch;
  request.heads_q = p.heads_q;
  request.query_rows = query_rows(p);
  request.arch = arch;
  return request;
}

Mismatch mismatch(const Row& row, const Request& request) {
  const Traits& traits = row.traits;
  for (size_t i = 0; i < std::size(kTraits); ++i) {
    const TraitInfo& trait = kTraits[i];
    if (!trait.of(traits.kind)) continue;
    const bool serves =
        trait.match == Match::kPadding ||
        (trait.match == Match::kExact && trait.value(traits) == trait.value(request.traits)) ||
        (trait.offset == offsetof(Traits, head_size_qk) &&
         request.head_size_qk <= traits.head_size_qk) ||
        (trait.offset == offsetof(Traits, head_size_v) &&
         request.head_size_v <= traits.head_size_v);
    if (!serves) return {Mismatch::kTrait, static_cast<uint8_t>(i)};
  }
  return {shape_mismatch(row, request)};
}

Mismatch mismatch(const LaunchTable& table, const Row& row, const Request& request) {
  const Mismatch why = mismatch(row, request);
  const bool suits = why.reason == Mismatch::kNone;
  if (suits && !is_for(table, row, table.find_arch(request.arch))) return {Mismatch::kArch};
  return why;
}

const Row* Plan::row(Kind kind) const {
  for (const Step& step : *this) {
    if (step.kind == kind) return step.row;
  }
  return nullptr;
}

bool Plan::is_complete() const {
  return std::all_of(begin(), end(), [](const Step& step) { return step.row != nullptr; });
}

Plan dispatch(const LaunchTable& table, const Request& request) {
  switch (request.direction) {
    case Direction::kForward:
      return plan_forward(table, request);
    case Direction::kBackward:
      return plan_backward(table, request);
    case Direction::kAppendKv:
      return plan_pass(table, kAppend, request);
    case Direction::kDropoutMask:
      return plan_mask(table, request);
    case Direction::kKvcacheForward:
      break;
  }
  return plan_over_cache(table, request);
}

int64_t most_parts(const LaunchTable& table, Request request) {
  int64_t most = 0;
  for (uint32_t i = 0; i < table.arch_count(); ++i) {
    request.arch = table.arch(i);
    const Plan plan = dispatch(table, request);
    const Row* const main = plan.main_row();
    if (plan.main != Kind::kBwdDqDkDv) {
      most = std::max({most, int64_t{plan.splits}, int64_t{plan.spare_lse}});
    } else if (main && main->tile_seqlen_k != 0) {
      // Upstream's kernels read two sums for a sequence without keys: docs/races.md, N.
      const int64_t least = request.traits.group_mode ? 2 : 1;
      most = std::max({most, least, tiles(request.seqlen_k, main->tile_seqlen_k)});
    }
  }
  return most;
}

int64_t most_parts(const LaunchTable& table, const Problem& p) {
  // Where no instance serves a backward pass, dispatch will say so.
  const int64_t least = is_backward(p) ? 1 : 0;
  const bool depends = p.deterministic || p.spare_lse || p.direction == Direction::kKvcacheForward;
  if (!depends || p.device_type == ATTN_DEVICE_CPU || !has_work(p)) return least;
  Request request = make_request(p, {});
  int64_t most = std::max(least, most_parts(table, request));
  if (p.direction == Direction::kKvcacheForward && !request.lengths_on_device) {
    // The size may be asked for before lengths are passed.
    request.lengths_on_device = true;
    most = std::max(most, most_parts(table, request));
  }
  return most;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
