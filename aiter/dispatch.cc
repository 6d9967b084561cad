// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/dispatch.h"

#include <string>
#include <utility>
#include <vector>

#include "aiter/error.h"
#include "aiter/explain.h"

namespace aiter_attn {
namespace {

// A head-size bucket: the greatest head sizes that its instances serve.
using Bucket = std::pair<uint16_t, uint16_t>;

Bucket bucket_of(const Instance& instance) {
  return {instance.traits.head_size_qk, instance.traits.head_size_v};
}

bool is_multiple(int32_t value, uint16_t tile) { return tile == 0 || value % tile == 0; }

// Whether the keys fill the instance's tiles. CK's forward kernels need at least one tile.
bool keys_fill_tiles(const Instance& instance, const Request& request) {
  if (request.seqlen_k == 0 && instance.traits.kind == Kind::kFwd) return false;
  return is_multiple(request.seqlen_k, instance.tile_seqlen_k);
}

// Bounds checks that the instance makes and the request does not need.
int unneeded_checks(const Instance& instance, const Request& request) {
  const Traits& traits = instance.traits;
  int count = 0;
  count += traits.pad_seqlen_q && is_multiple(request.seqlen_q, instance.tile_seqlen_q);
  count += traits.pad_seqlen_k && keys_fill_tiles(instance, request);
  count += traits.pad_head_size_qk && is_multiple(request.head_size_qk, instance.tile_head_size_qk);
  count += traits.pad_head_size_v && is_multiple(request.head_size_v, instance.tile_head_size_v);
  return count;
}

bool serves_head_size(int32_t head_size, bool padded, uint16_t tile, uint16_t alignment) {
  return padded ? alignment == 0 || head_size % alignment == 0 : is_multiple(head_size, tile);
}

const Instance* pick(const LaunchTable& table, Kind kind, Bucket bucket, const Request& request) {
  const Instance* best = nullptr;
  int least = 0;
  for (uint32_t i = 0; i < table.instance_count; ++i) {
    const Instance& instance = table.instances[i];
    if (instance.traits.kind != kind || bucket_of(instance) != bucket) continue;
    if (mismatch(instance, request) != Mismatch::kNone) continue;
    const int unneeded = unneeded_checks(instance, request);
    if (!best || unneeded < least) {
      best = &instance;
      least = unneeded;
    }
  }
  return best;
}

// The buckets that hold the request's head sizes, in the table's order.
std::vector<Bucket> buckets(const LaunchTable& table, Kind kind, const Request& request) {
  std::vector<Bucket> found;
  for (uint32_t i = 0; i < table.instance_count; ++i) {
    const Instance& instance = table.instances[i];
    const Traits& traits = instance.traits;
    if (traits.kind != kind || traits.dtype != request.dtype) continue;
    if (request.head_size_qk > traits.head_size_qk) continue;
    if (request.head_size_v > traits.head_size_v) continue;
    bool known = false;
    for (const Bucket& bucket : found) known = known || bucket == bucket_of(instance);
    if (!known) found.push_back(bucket_of(instance));
  }
  return found;
}

const Instance* pick_sum_heads(const LaunchTable& table, const Request& request) {
  for (uint32_t i = 0; i < table.instance_count; ++i) {
    const Instance& instance = table.instances[i];
    if (instance.traits.kind != Kind::kSumHeads) continue;
    if (mismatch(instance, request) == Mismatch::kNone) return &instance;
  }
  return nullptr;
}

}  // namespace

Request make_request(const attn_fwd_args& args, Mode mode, std::string_view arch) {
  const attn_problem& p = args.problem;
  return {p.dtype,    mode,       p.head_size_qk,           p.head_size_v,
          p.seqlen_q, p.seqlen_k, p.mask != ATTN_MASK_NONE, args.lse != nullptr,
          false,      arch};
}

// CK's unmasked backward kernels have no early exit: where a sequence has keys but no queries, they
// read and add outside of their buffers (block_fmha_bwd_dq_dk_dv_pipeline_*.hpp, "check early
// exit"). In group mode the lengths are known on the device only, so the masked kernels, which do
// exit, serve every problem there: no mask is a mask whose windows are open.
Request make_request(const attn_bwd_args& args, Mode mode, std::string_view arch) {
  const attn_problem& p = args.problem;
  return {p.dtype,
          mode,
          p.head_size_qk,
          p.head_size_v,
          p.seqlen_q,
          p.seqlen_k,
          p.mask != ATTN_MASK_NONE || mode == Mode::kGroup,
          false,
          p.heads_q != p.heads_k,
          arch};
}

Mismatch mismatch(const Instance& instance, const Request& request) {
  const Traits& traits = instance.traits;
  if (traits.dtype != request.dtype) return Mismatch::kDtype;
  // Summing heads knows nothing of sequences, nor of the size of a head.
  if (traits.kind != Kind::kSumHeads) {
    const bool group = request.mode == Mode::kGroup;
    if (traits.group_mode != group) return Mismatch::kMode;
    if (request.head_size_qk > traits.head_size_qk || request.head_size_v > traits.head_size_v) {
      return Mismatch::kHeadSize;
    }
    if (traits.bias != Bias::kNone || traits.bias_grad || traits.dropout ||
        traits.logits_soft_cap || traits.skip_min_seqlen_q || traits.deterministic) {
      return Mismatch::kFeature;
    }
    const bool reads_keys = traits.kind == Kind::kFwd || traits.kind == Kind::kBwdDqDkDv;
    if (reads_keys && traits.mask != request.mask) return Mismatch::kMask;
    if (traits.kind == Kind::kFwd && traits.lse != request.lse) return Mismatch::kLse;
    // In group mode every instance checks bounds: the lengths are known on the device only.
    if (!group) {
      if (!traits.pad_seqlen_q && !is_multiple(request.seqlen_q, instance.tile_seqlen_q)) {
        return Mismatch::kSeqlen;
      }
      if (!traits.pad_seqlen_k && reads_keys && !keys_fill_tiles(instance, request)) {
        return Mismatch::kSeqlen;
      }
    }
    if (!serves_head_size(request.head_size_qk, traits.pad_head_size_qk, instance.tile_head_size_qk,
                          instance.head_size_alignment) ||
        !serves_head_size(request.head_size_v, traits.pad_head_size_v, instance.tile_head_size_v,
                          instance.head_size_alignment)) {
      return Mismatch::kAlignment;
    }
  }
  if (!find_code_object(instance, request.arch)) return Mismatch::kArch;
  return Mismatch::kNone;
}

FwdPlan select_fwd(const LaunchTable& table, const Request& request) {
  for (const Bucket& bucket : buckets(table, Kind::kFwd, request)) {
    if (const Instance* fwd = pick(table, Kind::kFwd, bucket, request)) return {fwd};
  }
  fail(ATTN_ERROR_UNSUPPORTED, explain_unsupported(table, {Kind::kFwd}, request));
}

BwdPlan select_bwd(const LaunchTable& table, const Request& request) {
  std::vector<Kind> missing = {Kind::kBwdDotDoO, Kind::kBwdDqDkDv, Kind::kBwdConvertDq};
  const Instance* sum_heads = request.sum_heads ? pick_sum_heads(table, request) : nullptr;
  for (const Bucket& bucket : buckets(table, Kind::kBwdDqDkDv, request)) {
    const Instance* dot_do_o = pick(table, Kind::kBwdDotDoO, bucket, request);
    const Instance* dq_dk_dv = pick(table, Kind::kBwdDqDkDv, bucket, request);
    const Instance* convert_dq = pick(table, Kind::kBwdConvertDq, bucket, request);
    if (dot_do_o && dq_dk_dv && convert_dq && (sum_heads || !request.sum_heads)) {
      return {dot_do_o, dq_dk_dv, convert_dq, sum_heads};
    }
    missing.clear();
    if (!dot_do_o) missing.push_back(Kind::kBwdDotDoO);
    if (!dq_dk_dv) missing.push_back(Kind::kBwdDqDkDv);
    if (!convert_dq) missing.push_back(Kind::kBwdConvertDq);
  }
  if (request.sum_heads && !sum_heads) missing.push_back(Kind::kSumHeads);
  fail(ATTN_ERROR_UNSUPPORTED, explain_unsupported(table, missing, request));
}

const CodeObject* find_code_object(const Instance& instance, std::string_view arch) {
  for (uint32_t i = 0; i < instance.code_object_count; ++i) {
    if (arch == instance.code_objects[i].arch) return &instance.code_objects[i];
  }
  return nullptr;
}

bool has_arch(const LaunchTable& table, std::string_view arch) {
  for (uint32_t i = 0; i < table.arch_count; ++i) {
    if (arch == table.archs[i]) return true;
  }
  return false;
}

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::kFwd:
      return "fwd";
    case Kind::kBwdDotDoO:
      return "bwd_dot_do_o";
    case Kind::kBwdDqDkDv:
      return "bwd_dq_dk_dv";
    case Kind::kBwdConvertDq:
      return "bwd_convert_dq";
    case Kind::kSumHeads:
      return "sum_heads";
  }
  return "unknown";
}

}  // namespace aiter_attn
