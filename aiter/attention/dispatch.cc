// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/dispatch.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using kernels::Bucket;
using kernels::CodeObjectRow;
using kernels::Kind;
using kernels::kTraits;
using kernels::LaunchTable;
using kernels::Match;
using kernels::Range;
using kernels::Row;
using kernels::TraitInfo;
using kernels::Traits;

// Elements of a head that upstream's backward kernels check at once.
constexpr uint16_t kVector = 8;

// Most tiles are powers of two, which need no division.
bool is_multiple(int32_t value, uint16_t tile) {
  if (tile == 0) return true;
  const int32_t rest = tile - 1;
  return (tile & rest) == 0 ? (value & rest) == 0 : value % tile == 0;
}

// Bit k: kind k has the trait at that offset in Traits.
constexpr uint32_t kinds_with(size_t offset) {
  for (const TraitInfo& trait : kTraits) {
    if (trait.offset == offset) return trait.kinds;
  }
  return 0;
}

// Whether the instances of a kind may leave out bounds checks along the queries, or the keys.
bool may_fill_tiles_of_q(Kind kind) {
  constexpr uint32_t kKinds = kinds_with(offsetof(Traits, pad_seqlen_q));
  return kKinds >> static_cast<int>(kind) & 1;
}
bool may_fill_tiles_of_k(Kind kind) {
  constexpr uint32_t kKinds = kinds_with(offsetof(Traits, pad_seqlen_k));
  return kKinds >> static_cast<int>(kind) & 1;
}

// Whether the keys fill the instance's tiles. Upstream's forward kernels need at least one tile.
bool keys_fill_tiles(const Row& row, const Request& request) {
  if (request.seqlen_k == 0 && row.traits.kind == Kind::kFwd) return false;
  if (request.lengths_on_device) return false;
  return is_multiple(request.seqlen_k, row.tile_seqlen_k);
}

// The dimensions of a request that fill an instance's tiles. The same for all instances of a kind
// with these tiles.
struct Filled {
  bool seqlen_q, seqlen_k, head_size_qk, head_size_v;
  // Vectors in place of tiles.
  bool vectors_qk, vectors_v;

  Filled(const Row& row, const Request& request)
      : seqlen_q(!request.queries_on_device && is_multiple(request.seqlen_q, row.tile_seqlen_q)),
        seqlen_k(keys_fill_tiles(row, request)),
        head_size_qk(is_multiple(request.head_size_qk, row.tile_head_size_qk)),
        head_size_v(is_multiple(request.head_size_v, row.tile_head_size_v)),
        vectors_qk(is_multiple(request.head_size_qk, kVector)),
        vectors_v(is_multiple(request.head_size_v, kVector)) {}
};

bool has_same_tiles(const Row& a, const Row& b) {
  return a.tile_seqlen_q == b.tile_seqlen_q && a.tile_seqlen_k == b.tile_seqlen_k &&
         a.tile_head_size_qk == b.tile_head_size_qk && a.tile_head_size_v == b.tile_head_size_v;
}

// Bounds checks that the instance makes and the request does not need: along a padded head size
// none where it fills the tile, and none of each element where it is whole vectors. With transposed
// loads lengths cost no checks: buffers end where sequences do.
int unneeded_checks(const Row& row, const Filled& filled) {
  const Traits& traits = row.traits;
  const bool by_element = traits.head_size_step == 1;
  const bool checks_lengths = !traits.transposed_loads;
  int count = 0;
  count += checks_lengths && traits.pad_seqlen_q && filled.seqlen_q;
  count += checks_lengths && traits.pad_seqlen_k && filled.seqlen_k;
  count += traits.pad_head_size_qk && (filled.head_size_qk || (by_element && filled.vectors_qk));
  count += traits.pad_head_size_v && (filled.head_size_v || (by_element && filled.vectors_v));
  return count;
}

// Upstream's kernels find a tile of keys by one entry of the block table. The appending kernel
// writes a tile of new keys to the page where it begins and to the next one.
bool suits_pages(const Row& row, const Request& request) {
  if (!row.traits.paged_kv) return true;
  if (row.traits.kind != Kind::kFwdAppendkv) {
    return is_multiple(request.page_size, row.tile_seqlen_k);
  }
  const int64_t keys = std::min<int64_t>(request.seqlen_new, row.tile_seqlen_k);
  return keys <= int64_t{request.page_size} + 1;
}

// Why an instance that has the request's exact traits does not serve it.
Mismatch::Reason shape_mismatch(const Row& row, const Filled& filled, const Request& request) {
  const Traits& traits = row.traits;
  if (traits.max_seqlen_q != 0 && request.seqlen_q > traits.max_seqlen_q) {
    return Mismatch::kQueries;
  }
  // Upstream counts the keys of all sequences in group mode.
  const int64_t keys = request.traits.group_mode ? request.key_rows : request.seqlen_k;
  if (traits.max_seqlen_k != 0 && keys > traits.max_seqlen_k) return Mismatch::kKeys;
  // In group mode every instance checks bounds: the lengths are known on the device only.
  if (!request.traits.group_mode) {
    // With transposed loads buffers end where sequences do, and that of none ends nowhere.
    if (traits.transposed_loads && request.queries_on_device) return Mismatch::kPadding;
    if (!traits.pad_seqlen_q && !filled.seqlen_q && may_fill_tiles_of_q(traits.kind)) {
      return Mismatch::kSeqlen;
    }
    if (!traits.pad_seqlen_k && !filled.seqlen_k && may_fill_tiles_of_k(traits.kind)) {
      return Mismatch::kSeqlen;
    }
  }
  if (!suits_pages(row, request)) return Mismatch::kPageSize;
  const auto serves = [&row](bool padded, bool fills, int32_t head_size) {
    return padded ? is_multiple(head_size, row.head_size_alignment) : fills;
  };
  if (!serves(traits.pad_head_size_qk, filled.head_size_qk, request.head_size_qk) ||
      !serves(traits.pad_head_size_v, filled.head_size_v, request.head_size_v)) {
    return Mismatch::kAlignment;
  }
  return Mismatch::kNone;
}

// NULL: the instance does not exist on that arch.
const CodeObjectRow* object_for(const LaunchTable& table, const Row& row, int arch) {
  return arch < 0 ? nullptr : table.object(row, arch);
}

bool may_take(const CodeObjectRow& object, const Request& request) {
  return request.takes_unbuilt || object.size != 0;
}

// The key of the instances of a kind that have the request's exact traits, in one bucket.
uint64_t key_of(const Request& request, Kind kind, uint16_t head_size_qk, uint16_t head_size_v) {
  Traits traits = request.traits;
  traits.kind = kind;
  traits.head_size_qk = head_size_qk;
  traits.head_size_v = head_size_v;
  return kernels::exact_key(traits) & kernels::kExactKeyMasks[static_cast<size_t>(kind)];
}

// A kernel that combines parts must check the bounds that the kernel which made them does: upstream
// has the one for the other, and the tiles of the first say nothing of the head size. One that adds
// up a sum of dq for every tile of keys must have the tiles of the kernel that made these.
bool goes_with(const Row& row, const Row* parts) {
  if (row.traits.kind == Kind::kBwdConvertDq && row.traits.deterministic) {
    return !parts || row.tile_seqlen_k == parts->tile_seqlen_k;
  }
  if (row.traits.kind != Kind::kFwdSplitkvCombine) return true;
  return parts && row.traits.pad_seqlen_q == parts->traits.pad_seqlen_q &&
         row.traits.pad_head_size_v == parts->traits.pad_head_size_v;
}

// Kernels for few queries write dq themselves.
bool is_needed(Kind kind, const Row* before) {
  return kind != Kind::kBwdConvertDq || !before || before->traits.max_seqlen_q == 0;
}

// before: the row that was picked for the step before.
const Row* pick(const LaunchTable& table, Kind kind, uint16_t head_size_qk, uint16_t head_size_v,
                const Request& request, int arch, const Row* before = nullptr) {
  const Row* best = nullptr;
  int least = 0;
  const Range<uint32_t> rows = table.rows(key_of(request, kind, head_size_qk, head_size_v));
  if (rows.empty()) return nullptr;
  const Row* tiled = &table.row(*rows.begin());
  Filled filled(*tiled, request);
  for (const uint32_t index : rows) {
    const Row& row = table.row(index);
    if (!has_same_tiles(row, *tiled)) {
      tiled = &row;
      filled = Filled(row, request);
    }
    const int unneeded = unneeded_checks(row, filled);
    if (best && unneeded >= least) continue;
    if (shape_mismatch(row, filled, request) != Mismatch::kNone) continue;
    if (!goes_with(row, before)) continue;
    const CodeObjectRow* const object = object_for(table, row, arch);
    if (!object || !may_take(*object, request)) continue;
    if (hazards_met(*object, row, request) != 0) continue;
    best = &row;
    least = unneeded;
    if (unneeded == 0) break;
  }
  return best;
}

// fp8 is a dtype of its own by each dtype of o.
kernels::Dtype table_dtype(const Problem& p) {
  if (!is_fp8(p.dtype)) return static_cast<kernels::Dtype>(p.dtype);
  if (p.o_dtype == ATTN_DTYPE_BF16) return kernels::Dtype::kFp8bf16;
  return p.o_dtype == ATTN_DTYPE_FP32 ? kernels::Dtype::kFp8fp32 : kernels::Dtype::kFp8;
}

}  // namespace

bool checks_keys(const Row& row) {
  return row.traits.pad_seqlen_k || !may_fill_tiles_of_k(row.traits.kind);
}

Request make_request(const Problem& p, std::string_view arch, uint32_t compute_units) {
  Request request = {};
  request.pass = p.pass;
  request.traits.dtype = table_dtype(p);
  request.traits.group_mode = is_group(p);
  request.traits.mask = p.mask != ATTN_MASK_NONE;
  request.traits.window = request.traits.mask && !is_causal(p);
  request.traits.lse = p.lse != nullptr;
  request.traits.bias = static_cast<kernels::Bias>(p.bias);
  request.traits.dropout = p.dropout_p > 0;
  request.traits.logits_soft_cap = p.logits_soft_cap > 0;
  request.traits.skip_min_seqlen_q = p.min_seqlen_q > 0;
  request.traits.paged_kv = in_pages(p);
  request.traits.rounding = static_cast<kernels::Rounding>(p.rounding);
  request.traits.schedule = kernels::schedule_of(arch, compute_units);
  request.preference = p.preference;
  request.named_kernels = p.kernels;
  request.head_size_qk = p.head_size_qk;
  request.head_size_v = p.head_size_v;
  request.seqlen_q = p.seqlen_q;
  request.seqlen_k = p.seqlen_k;
  request.page_size = p.cache.page_size;
  // In group mode all instances check bounds.
  request.queries_on_device = !is_group(p) && has_padded_queries(p);
  request.lengths_on_device = p.cache.seqlens_k || (!is_group(p) && has_padded_keys(p));
  request.batch = p.batch;
  request.heads_q = p.heads_q;
  request.query_rows = query_rows(p);
  request.key_rows = key_rows(p);
  request.arch = arch;
  p.pass->ask(p, &request);
  return request;
}

Mismatch mismatch(const Row& row, const Request& request) {
  const Traits& traits = row.traits;
  for (size_t i = 0; i < std::size(kTraits); ++i) {
    const TraitInfo& trait = kTraits[i];
    if (!trait.of(traits.kind)) continue;
    const bool serves =
        trait.match == Match::kPadding || trait.match == Match::kOther ||
        (trait.match == Match::kExact && trait.value(traits) == trait.value(request.traits)) ||
        (trait.offset == offsetof(Traits, head_size_qk) &&
         request.head_size_qk <= traits.head_size_qk) ||
        (trait.offset == offsetof(Traits, head_size_v) &&
         request.head_size_v <= traits.head_size_v);
    if (!serves) return {Mismatch::kTrait, static_cast<uint8_t>(i)};
  }
  return {shape_mismatch(row, Filled(row, request), request)};
}

Mismatch mismatch(const LaunchTable& table, const Row& row, const Request& request) {
  const Mismatch why = mismatch(row, request);
  if (why.reason != Mismatch::kNone) return why;
  const CodeObjectRow* const object = object_for(table, row, table.find_arch(request.arch));
  if (!object) return {Mismatch::kArch};
  if (!may_take(*object, request)) return {Mismatch::kUnbuilt};
  if (hazards_met(*object, row, request) != 0) return {Mismatch::kHazard};
  return why;
}

uint32_t hazards_met(const CodeObjectRow& object, const Row& row, const Request& request) {
  if (object.hazards == 0 || needs_asm(request)) return 0;
  return object.hazards & request.pass->hazards(request, row);
}

Plan dispatch(const LaunchTable& table, const Request& request) {
  Plan plan = request.pass->plan(table, request);
  if (plan.is_complete() || request.takes_unbuilt) return plan;
  Request wider = request;
  wider.takes_unbuilt = true;
  return wider.pass->plan(table, wider);
}

const Row* Plan::row(Kind kind) const {
  for (const Step& step : *this) {
    if (step.kind == kind) return step.row;
  }
  return nullptr;
}

Plan plan_kernels(const LaunchTable& table, const KernelSequence& sequence,
                  const Request& request) {
  Plan plan;
  plan.main = sequence.main;
  for (size_t i = 0; i < sequence.count; ++i) plan.add(sequence.kinds[i], nullptr);
  const Range<Bucket> buckets = table.buckets(sequence.main, request.traits.dtype);
  if (buckets.empty()) return plan;
  const int arch = table.find_arch(request.arch);
  for (const Bucket& bucket : buckets) {
    if (request.head_size_qk > bucket.head_size_qk) continue;
    if (request.head_size_v > bucket.head_size_v) continue;
    const Row* before = nullptr;
    bool is_complete = true;
    plan.count = 0;
    for (size_t i = 0; i < sequence.count && is_needed(sequence.kinds[i], before); ++i) {
      before = pick(table, sequence.kinds[i], bucket.head_size_qk, bucket.head_size_v, request,
                    arch, before);
      plan.add(sequence.kinds[i], before);
      is_complete &= before != nullptr;
    }
    if (is_complete) break;
  }
  return plan;
}

const Row* pick_kernel(const LaunchTable& table, Kind kind, const Request& request) {
  return pick(table, kind, 0, 0, request, table.find_arch(request.arch));
}

int64_t most_parts(const LaunchTable& table, Request request) {
  int64_t most = 0;
  for (uint32_t i = 0; i < table.arch_count(); ++i) {
    request.arch = table.arch(i);
    most = std::max(most, request.pass->parts(request, dispatch(table, request)));
  }
  return most;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
