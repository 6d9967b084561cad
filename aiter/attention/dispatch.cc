// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/dispatch.h"

#include <algorithm>
#include <cstring>
#include <iterator>

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

// Why an instance that has the request's exact traits does not serve it.
Mismatch::Reason shape_mismatch(const LaunchTable& table, const Row& row, const Request& request,
                                int arch) {
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
  if (!serves_head_size(request.head_size_qk, traits.pad_head_size_qk, row.tile_head_size_qk,
                        row.head_size_alignment) ||
      !serves_head_size(request.head_size_v, traits.pad_head_size_v, row.tile_head_size_v,
                        row.head_size_alignment)) {
    return Mismatch::kAlignment;
  }
  if (arch < 0 || !table.object(row, arch)) return Mismatch::kArch;
  return Mismatch::kNone;
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

const Row* pick(const LaunchTable& table, Kind kind, uint16_t head_size_qk, uint16_t head_size_v,
                const Request& request, int arch) {
  const Row* best = nullptr;
  int least = 0;
  for (const uint32_t index : table.rows(key_of(request, kind, head_size_qk, head_size_v))) {
    const Row& row = table.row(index);
    if (shape_mismatch(table, row, request, arch) != Mismatch::kNone) continue;
    const int unneeded = unneeded_checks(row, request);
    if (!best || unneeded < least) {
      best = &row;
      least = unneeded;
    }
  }
  return best;
}

}  // namespace

// Upstream's unmasked backward kernels have no early exit: where a sequence has keys but no
// queries, they read and add outside of their buffers (block_fmha_bwd_dq_dk_dv_pipeline_*.hpp,
// "check early exit"). In group mode the lengths are known on the device only, so the masked
// kernels, which do exit, serve every problem there: no mask is a mask whose windows are open.
Request make_request(const Problem& p, std::string_view arch) {
  const bool backward = p.direction == Direction::kBackward;
  Request request = {};
  request.direction = p.direction;
  request.traits.dtype = static_cast<kernels::Dtype>(p.dtype);
  request.traits.group_mode = is_group(p);
  request.traits.mask = p.mask != ATTN_MASK_NONE || (backward && is_group(p));
  request.traits.lse = p.lse != nullptr;
  request.traits.bias = static_cast<kernels::Bias>(p.bias);
  request.traits.bias_grad = p.bias_grad;
  request.traits.dropout = p.dropout_p > 0;
  request.traits.logits_soft_cap = p.logits_soft_cap > 0;
  request.traits.skip_min_seqlen_q = p.min_seqlen_q > 0;
  request.traits.deterministic = p.deterministic;
  request.head_size_qk = p.head_size_qk;
  request.head_size_v = p.head_size_v;
  request.seqlen_q = p.seqlen_q;
  request.seqlen_k = p.seqlen_k;
  request.sum_heads = backward && p.heads_q != p.heads_k;
  request.arch = arch;
  return request;
}

Mismatch mismatch(const LaunchTable& table, const Row& row, const Request& request) {
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
  return {shape_mismatch(table, row, request, table.find_arch(request.arch))};
}

bool Plan::is_complete() const {
  return std::all_of(begin(), end(), [](const Step& step) { return step.row != nullptr; });
}

Plan dispatch(const LaunchTable& table, const Request& request) {
  if (request.direction == Direction::kKvcacheForward) {
    Plan none;
    none.add(request.traits.paged_kv ? Kind::kFwdPagedkv : Kind::kFwdSplitkv, nullptr);
    return none;
  }
  static constexpr Kind kForward[] = {Kind::kFwd};
  static constexpr Kind kBackward[] = {Kind::kBwdDotDoO, Kind::kBwdDqDkDv, Kind::kBwdConvertDq};
  const bool forward = request.direction == Direction::kForward;
  const Kind* const kinds = forward ? kForward : kBackward;
  const size_t kind_count = forward ? std::size(kForward) : std::size(kBackward);
  // The kind whose buckets are tried: all kinds of a direction have the same.
  const Kind main = forward ? Kind::kFwd : Kind::kBwdDqDkDv;

  const int arch = table.find_arch(request.arch);
  Plan plan;
  for (size_t i = 0; i < kind_count; ++i) plan.add(kinds[i], nullptr);
  for (const kernels::Bucket& bucket : table.buckets(main, request.traits.dtype)) {
    if (request.head_size_qk > bucket.head_size_qk) continue;
    if (request.head_size_v > bucket.head_size_v) continue;
    for (size_t i = 0; i < kind_count; ++i) {
      plan.steps[i].row =
          pick(table, kinds[i], bucket.head_size_qk, bucket.head_size_v, request, arch);
    }
    if (plan.is_complete()) break;
  }
  if (request.sum_heads) {
    // It knows nothing of sequences, nor of the size of a head.
    const Row* const sum_heads = pick(table, Kind::kSumHeads, 0, 0, request, arch);
    plan.add(Kind::kSumHeads, sum_heads);
    plan.add(Kind::kSumHeads, sum_heads);
  }
  return plan;
}

int64_t dq_splits(const LaunchTable& table, Request request) {
  int64_t most = 0;
  for (uint32_t i = 0; i < table.arch_count(); ++i) {
    request.arch = table.arch(i);
    for (const Step& step : dispatch(table, request)) {
      if (step.kind != Kind::kBwdDqDkDv || !step.row || step.row->tile_seqlen_k == 0) continue;
      const int64_t tile = step.row->tile_seqlen_k;
      most = std::max(most, (request.seqlen_k + tile - 1) / tile);
    }
  }
  return most;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
