// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/passes/forward/asm.h"

#include <cstdint>

#include "aiter/attention/problem/asm_tensors.h"
#include "aiter/attention/problem/operands.h"
#include "aiter/attention/problem/pass.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

// AITER's: fewer queries are another kernel's.
constexpr int32_t kMostShortQueries = 128;

// The mask is none, or lets a query see all keys up to the diagonal from the bottom right.
bool has_mask(const Problem& p) {
  if (p.mask == ATTN_MASK_NONE) return true;
  if (!is_causal(p)) return false;
  return p.mask == ATTN_MASK_BOTTOM_RIGHT || (!is_group(p) && p.seqlen_q == p.seqlen_k);
}

// Padded sequences: sums of used rows are an argument of theirs in group mode. Without a mask the
// rows of sequences without keys are filled by a kernel of ours, which knows of no padding.
const char* why_not_asm_padded(const Problem& p) {
  if (!is_padded(p)) return nullptr;
  if (!is_group(p)) return "have padded sequences in group mode alone";
  if (p.seqused_q || p.seqused_k) return "take sums of used rows (cu_seqused), no numbers of them";
  if (p.mask == ATTN_MASK_NONE) return "have no padded sequences without a mask";
  return nullptr;
}

}  // namespace

const char* why_not_asm(const Problem& p) {
  if (p.dtype != ATTN_DTYPE_BF16) return "are for bf16";
  if (p.head_size_v != 128 || (p.head_size_qk != 128 && p.head_size_qk != 192)) {
    return "are for head size 128, or 192 (q, k) and 128 (v)";
  }
  if (p.bias != ATTN_BIAS_NONE) return "have no bias";
  if (p.dropout_p > 0) return "have no dropout";
  if (p.logits_soft_cap > 0) return "have no soft cap";
  if (const char* const why = why_not_asm_padded(p)) return why;
  if (!has_scores(p)) return "need a key";
  if (p.min_seqlen_q > 0) return "leave no sequence out, as min_seqlen_q asks";
  if (!has_mask(p)) return "have no mask but the causal one, aligned to the bottom right";
  for (const Operand& operand : p.pass->operands(p)) {
    if (const char* const why = why_not_asm_operand(p, operand)) return why;
  }
  constexpr int64_t kFloat = sizeof(float);
  if (!asm_reaches(query_rows(p), p.heads_q * kFloat)) return "address lse in 32 bits of bytes";
  return nullptr;
}

const char* why_asm_by_name(const Problem& p) {
  if (is_group(p) || p.seqlen_q > kMostShortQueries) return nullptr;
  return "are for more than 128 queries where AITER chooses";
}

uint32_t asm_hazards(const Request& request, const kernels::Row& row) {
  using kernels::Hazard;
  const bool group = request.traits.group_mode, mask = request.traits.mask;
  // Not kNoKeys: such rows are filled afterwards. Group mode has the greatest lengths: a sequence
  // may have any below.
  const int64_t without_keys = request.seqlen_q - (group ? 0 : int64_t{request.seqlen_k});
  uint32_t met = bit(Hazard::kAlways);
  if (mask && request.seqlen_q > row.tile_seqlen_q) met |= bit(Hazard::kTwoTiles);
  const int64_t two_tiles = int64_t{2} * row.tile_seqlen_q;
  if (mask && without_keys >= two_tiles) met |= bit(Hazard::kTwoTilesWithoutKeys);
  return met;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
