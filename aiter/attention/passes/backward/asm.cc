// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/passes/backward/asm.h"

#include <cstdint>
#include <string_view>

#include "aiter/attention/problem/asm_tensors.h"
#include "aiter/attention/problem/operands.h"
#include "aiter/attention/problem/pass.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using kernels::Kind;
using kernels::MaskShape;

constexpr int32_t kLeastHeadSize = 64;
constexpr int32_t kGreatestHeadSize = 192;
constexpr int32_t kHeadSizeStep = 8;
constexpr int32_t kApart = 64;           // the head sizes of kernels
constexpr int32_t kOtherHeadSize = 128;  // of v, where that of q and k is the greatest
// AITER's: fewer queries are another kernel's.
constexpr int32_t kMostShortQueries = 16;

bool is_open_or_causal(const Problem& p) { return p.mask == ATTN_MASK_NONE || is_causal(p); }

// Where both corners are the same AITER takes the top left.
MaskShape mask_shape(const Problem& p) {
  if (p.mask == ATTN_MASK_NONE) return MaskShape::kNone;
  const bool is_square = !is_group(p) && p.seqlen_q == p.seqlen_k;
  return p.mask == ATTN_MASK_TOP_LEFT || is_square ? MaskShape::kTopLeft : MaskShape::kBottomRight;
}

bool has_one_head_size(const Problem& p) {
  const int32_t size = p.head_size_qk;
  return size == p.head_size_v && size >= kLeastHeadSize && size <= kGreatestHeadSize &&
         size % kHeadSizeStep == 0;
}

bool has_two_head_sizes(const Problem& p) {
  return p.head_size_qk == kGreatestHeadSize && p.head_size_v == kOtherHeadSize;
}

// As the end of a sentence about them; NULL: they serve the problem.
const char* why_not(const Problem& p) {
  if (p.dtype != ATTN_DTYPE_BF16 && p.dtype != ATTN_DTYPE_FP16) return "are for fp16 and bf16";
  if (!has_two_head_sizes(p) && !has_one_head_size(p)) {
    return "are for one head size, a multiple of 8 from 64 to 192, or 192 (q, k) and 128 (v)";
  }
  if (p.bias != ATTN_BIAS_NONE) return "have no bias";
  if (p.dropout_p > 0) return "have no dropout";
  if (is_padded(p)) return "have no padded sequences";
  if (p.deterministic) return "add to dq in any order, and the call is deterministic";
  if (!is_open_or_causal(p)) return "have no mask but the causal one";
  for (const Operand& operand : p.pass->operands(p)) {
    if (const char* const why = why_not_asm_operand(p, operand)) return why;
  }
  constexpr int64_t kFloat = sizeof(float);
  const int64_t heads = p.heads_q, size = p.head_size_qk, element = dtype_size(p.dtype);
  if (!asm_reaches(query_rows(p), heads * size * kFloat)) {
    return "address the sums of dq in 32 bits of bytes";
  }
  if (!asm_reaches(key_rows(p), heads * size * element)) {
    return "address dk and dv of all query heads in 32 bits of bytes";
  }
  return nullptr;
}

// Why only where they are asked for by name; NULL: always. For problems that they serve.
const char* why_by_name(const Problem& p, std::string_view arch) {
  if (!is_group(p) && p.seqlen_q <= kMostShortQueries) {
    return "are for more than 16 queries where AITER chooses";
  }
  if (kernels::is_backward_choice(arch, p.head_size_qk, p.head_size_v, mask_shape(p))) {
    return nullptr;
  }
  return "are not what AITER chooses for these head sizes on this arch";
}

// Whether kernels for whole tiles serve the problem. They have one length, one set of strides for q
// and dout and one for k and v, from which the places of dk and dv follow, too; and those of lse,
// delta and the sums of dq follow from q's stride of batches.
bool has_whole_tiles(const Problem& p) {
  if (is_group(p) || p.seqlen_q != p.seqlen_k || p.head_size_qk != p.head_size_v) return false;
  const bool batches = p.batch > 1;
  const auto lie_alike = [batches](const attn_tensor& a, const attn_tensor& b) {
    return a.stride_head == b.stride_head && a.stride_seq == b.stride_seq &&
           (!batches || a.stride_batch == b.stride_batch);
  };
  const Extents query = query_extents(p, p.head_size_qk);
  const Extents key = key_extents(p, p.heads_k, p.head_size_qk);
  const attn_tensor q = given_or_contiguous(p.q, query), k = given_or_contiguous(p.k, key);
  if (!lie_alike(q, given_or_contiguous(p.dout, query))) return false;
  if (!lie_alike(k, given_or_contiguous(p.v, key))) return false;
  const int64_t size = p.head_size_qk, rows = p.seqlen_q;
  if (batches && q.stride_batch != rows * p.heads_q * size) return false;
  if (p.heads_q != p.heads_k) {
    // Until they are summed, dk and dv are contiguous.
    return k.stride_head == size && (!batches || k.stride_batch == rows * p.heads_k * size);
  }
  const attn_tensor dk = given_or_contiguous(p.dk, key), dv = given_or_contiguous(p.dv, key);
  return lie_alike(dk, dv) && dk.stride_head == k.stride_head &&
         (!batches || dk.stride_batch == k.stride_batch);
}

// The kernel of a kind, by its own buckets of head sizes.
const kernels::Row* kernel_of(const kernels::LaunchTable& table, Kind kind,
                              const Request& request) {
  return plan_kernels(table, {kind, {kind}, 1}, request).main_row();
}

const kernels::Row* main_kernel(const kernels::LaunchTable& table, Kind kind,
                                const Request& request) {
  const kernels::Row* row = kernel_of(table, kind, request);
  if (!row && request.preference == ATTN_KERNELS_ASM &&
      request.traits.dtype == kernels::Dtype::kFp16) {
    // gfx942's kernels have this one rounding to fp16.
    Request truncated = request;
    truncated.traits.rounding = kernels::Rounding::kTowardZero;
    row = kernel_of(table, kind, truncated);
  }
  // A larger kernel stands in for none, and those of one head size know no other of v.
  const bool suits = row && row->traits.head_size_qk - request.head_size_qk < kApart &&
                     (request.head_size_qk == request.head_size_v ||
                      request.head_size_v == row->traits.head_size_v);
  return suits ? row : nullptr;
}

}  // namespace

void ask_asm_backward(const Problem& p, Request* request) {
  request->asm_main = Kind::kBwdAsm;
  request->traits.mask_shape = mask_shape(p);
  request->not_asm = why_not(p);
  if (request->not_asm) return;
  request->asm_by_name = why_by_name(p, request->arch);
  request->asm_whole = has_whole_tiles(p);
}

bool is_asm_backward(Kind main) { return main == Kind::kBwdAsm || main == Kind::kBwdAsmWhole; }

uint32_t asm_backward_hazards(const Request& request, const kernels::Row& row) {
  using kernels::Hazard;
  // dk and dv are zeroed for the kernels that leave them unwritten where there are no queries.
  // Kernels that are wrong for gaps in batches are asked for problems without them alone.
  uint32_t met = ~(bit(Hazard::kNoQueries) | bit(Hazard::kGapsInBatches));
  if (row.traits.mask_shape == MaskShape::kNone || request.seqlen_k <= row.tile_seqlen_k) {
    met &= ~bit(Hazard::kTwoTiles);
  }
  if (request.head_size_qk == row.traits.head_size_qk) met &= ~bit(Hazard::kGapsAfterPaddedHeads);
  return met;
}

Plan plan_asm_backward(const kernels::LaunchTable& table, const Request& request) {
  const kernels::Row* main =
      request.asm_whole ? main_kernel(table, Kind::kBwdAsmWhole, request) : nullptr;
  Plan plan;
  plan.main = main ? Kind::kBwdAsmWhole : Kind::kBwdAsm;
  if (!main) main = main_kernel(table, Kind::kBwdAsm, request);
  if (main) plan.add(Kind::kBwdDotDoO, kernel_of(table, Kind::kBwdDotDoO, request));
  plan.add(plan.main, main);
  if (main) plan.add(Kind::kBwdConvertDq, kernel_of(table, Kind::kBwdConvertDq, request));
  return plan;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
