// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/problem/validate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "aiter/attention/problem/checks.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

void validate_mode(const attn_problem& p) {
  if (p.mode != ATTN_MODE_BATCH && p.mode != ATTN_MODE_GROUP) {
    refuse("mode", p.mode, "must be ATTN_MODE_BATCH (", static_cast<int>(ATTN_MODE_BATCH),
           ") or ATTN_MODE_GROUP (", static_cast<int>(ATTN_MODE_GROUP), ")");
  }
}

void validate_device(const attn_problem& p) {
  require_one_of("device_type", p.device_type,
                 {{ATTN_DEVICE_CPU, "CPU"}, {ATTN_DEVICE_ROCM, "ROCm"}});
  if (p.device_type != ATTN_DEVICE_CPU) return require_at_least("device_id", p.device_id, 0);
  if (p.device_id != 0) refuse("device_id", p.device_id, "must be 0 on the CPU");
}

void validate_dtype(const attn_problem& p) {
  require_one_of("dtype", p.dtype,
                 {{ATTN_DTYPE_FP16, "fp16"},
                  {ATTN_DTYPE_BF16, "bf16"},
                  {ATTN_DTYPE_FP32, "fp32"},
                  {ATTN_DTYPE_FP8_E4M3, "fp8 e4m3"},
                  {ATTN_DTYPE_FP8_E4M3_FNUZ, "fp8 e4m3 fnuz"}});
  if (p.dtype == ATTN_DTYPE_FP32 && p.device_type != ATTN_DEVICE_CPU) {
    fail(Status::kUnsupported, Field("dtype"),
         " is fp32, which only the CPU reference computes: use fp16 or bf16 on the GPU");
  }
}

void validate_mask(const attn_problem& p) {
  require_one_of("mask", p.mask,
                 {{ATTN_MASK_NONE, "none"},
                  {ATTN_MASK_TOP_LEFT, "top left"},
                  {ATTN_MASK_BOTTOM_RIGHT, "bottom right"}});
  const bool none = p.mask == ATTN_MASK_NONE;
  const auto window = [none](const char* field, int32_t value) {
    if (none && value != -1) {
      refuse(field, value, "must be -1 without a mask: set mask to top left or bottom right");
    }
    if (value < -1) refuse(field, value, "must be -1 (all keys) or a number of keys");
  };
  window("window_left", p.window_left);
  window("window_right", p.window_right);
}

void validate_total(const char* field, int32_t total, const attn_problem& p, const char* longest,
                    int32_t seqlen, bool is_padded) {
  require_at_least(field, total, 0);
  if (!is_padded && total > int64_t{p.batch} * seqlen) {
    refuse(field, total, "cannot exceed batch (", p.batch, ") times ", longest, " (", seqlen,
           "), the greatest length");
  }
}

void validate_cu_seqlens(const char* field, const int32_t* cu, const attn_problem& p,
                         const char* total_field, std::optional<int32_t> total, const char* longest,
                         int32_t seqlen, bool is_padded) {
  if (!cu) {
    refuse(field, "NULL", "group mode needs batch + 1 = ", int64_t{p.batch} + 1,
           " offsets in the memory of the device");
  }
  require_aligned(field, cu, alignof(int32_t));
  if (p.device_type != ATTN_DEVICE_CPU) return;
  if (cu[0] != 0) refuse({concat(field, "[0]"), 0}, cu[0], "must be 0");
  for (int32_t i = 0; i < p.batch; ++i) {
    const int64_t length = int64_t{cu[i + 1]} - cu[i];
    if (length < 0) {
      refuse({concat(field, "[", i + 1, "]"), i}, cu[i + 1],
             "must not be less than the one before, ", cu[i]);
    }
    if (length > seqlen && !is_padded) {
      refuse({concat(field, "[", i + 1, "] - ", field, "[", i, "]"), i}, length, "must not exceed ",
             longest, ", ", seqlen);
    }
  }
  if (total && cu[p.batch] != *total) {
    refuse(concat(field, "[", p.batch, "]"), cu[p.batch], "must equal ", total_field, ", ", *total);
  }
}

// The fields of queries, or of keys, that say which rows are used.
struct Side {
  const char *seqused_field, *cu_seqused_field, *seqlen_field;
  const int32_t* attn_problem::* seqused;
  const int32_t* attn_problem::* cu_seqused;
  const int32_t* attn_problem::* cu_seqlens;
  int32_t attn_problem::* seqlen;
};

constexpr Side kSides[] = {
    {"seqused_q", "cu_seqused_q", "seqlen_q", &attn_problem::seqused_q, &attn_problem::cu_seqused_q,
     &attn_problem::cu_seqlens_q, &attn_problem::seqlen_q},
    {"seqused_k", "cu_seqused_k", "seqlen_k", &attn_problem::seqused_k, &attn_problem::cu_seqused_k,
     &attn_problem::cu_seqlens_k, &attn_problem::seqlen_k}};

// In host memory every part reads numbers of rows, and none their sums.
void make_seqused(Problem* p, const Side& side) {
  const int32_t* const sums = p->*side.cu_seqused;
  const char* const field = side.cu_seqused_field;
  if (sums[0] != 0) refuse({concat(field, "[0]"), 0}, sums[0], "must be 0");
  const std::shared_ptr<int32_t[]> used(new int32_t[p->batch]);
  for (int32_t i = 0; i < p->batch; ++i) {
    if (sums[i + 1] < sums[i]) {
      refuse({concat(field, "[", i + 1, "]"), i}, sums[i + 1],
             "must not be less than the one before, ", sums[i]);
    }
    used[i] = sums[i + 1] - sums[i];
  }
  p->*side.seqused = used.get();
  p->*side.cu_seqused = nullptr;
  p->copies.push_back(used);
}

void validate_used_rows(Problem* p, const Side& side) {
  const bool of_sums = p->*side.cu_seqused;
  const char* const field = of_sums ? side.cu_seqused_field : side.seqused_field;
  const int32_t* attn_problem::* const array = of_sums ? side.cu_seqused : side.seqused;
  if (!(p->*array)) return;
  require_aligned(field, p->*array, alignof(int32_t));
  if (p->device_type != ATTN_DEVICE_CPU) return;
  copy_array(p, &(p->*array), int64_t{p->batch} + of_sums);
  if (of_sums) make_seqused(p, side);
  const int32_t* const starts = p->*side.cu_seqlens;
  const int32_t seqlen = p->*side.seqlen;
  for (int32_t i = 0; i < p->batch; ++i) {
    const int32_t used = (p->*side.seqused)[i];
    const int64_t room = is_group(*p) ? int64_t{starts[i + 1]} - starts[i] : seqlen;
    const int64_t most = std::min<int64_t>(room, seqlen);
    if (used >= 0 && used <= most) continue;
    const std::string name = of_sums ? concat(field, "[", i + 1, "] - ", field, "[", i, "]")
                                     : concat(field, "[", i, "]");
    refuse({name, i}, used, "must be from 0 to ", most,
           most == seqlen ? concat(", ", side.seqlen_field)
                          : std::string(", the rows of the sequence"));
  }
}

// On a GPU, what kernels do not take there.
void refuse_in_batches(const Problem& p, const Side& side) {
  const bool of_sums = p.*side.cu_seqused;
  const Field field(of_sums ? side.cu_seqused_field : side.seqused_field);
  if (!p.pass->takes_padded_batches()) {
    fail(Status::kUnsupported, field, " is set in batch mode, but kernels take padded sequences ",
         "in group mode alone: set mode to ATTN_MODE_GROUP, and cu_seqlens_q and cu_seqlens_k to ",
         "the multiples of seqlen_q and seqlen_k");
  }
  if (!of_sums) {
    fail(Status::kUnsupported, field, " is set in batch mode, where kernels take ",
         side.cu_seqused_field, " alone: pass the sums of these numbers");
  }
}

void validate_padding(Problem* problem, Pointers pointers) {
  const Problem& p = *problem;
  for (const Side& side : kSides) {
    if (!(p.*side.seqused || p.*side.cu_seqused)) continue;
    if (p.*side.seqused && p.*side.cu_seqused) {
      refuse(side.cu_seqused_field, p.*side.cu_seqused, "must be NULL beside ", side.seqused_field,
             ", which says the same: leave one of them NULL");
    }
    const bool of_sums = p.*side.cu_seqused;
    const char* const field = of_sums ? side.cu_seqused_field : side.seqused_field;
    if (!p.pass->takes_padding()) {
      refuse(field, of_sums ? p.*side.cu_seqused : p.*side.seqused,
             "belongs to attn_fwd, attn_bwd and attn_dropout_mask: leave it NULL; ",
             "over a cache seqlens_k says how many keys are used");
    }
    if (p.device_type != ATTN_DEVICE_CPU && !is_group(p)) refuse_in_batches(p, side);
    if (pointers == Pointers::kRequired) validate_used_rows(problem, side);
  }
}

// Whether cu_seqlens_k may be absent: pages say where keys are.
bool may_lack_cu_seqlens_k(const Problem& p) {
  return in_pages(p) && (p.cache.seqlens_k || p.cache.page_indptr);
}

void validate_kernels(const Problem& p) {
  require_one_of("kernels", p.kernels,
                 {{ATTN_KERNELS_DEFAULT, "default"},
                  {ATTN_KERNELS_FASTEST, "fastest"},
                  {ATTN_KERNELS_CK, "ck"},
                  {ATTN_KERNELS_ASM, "asm"}});
  require_one_of("rounding", p.rounding,
                 {{ATTN_ROUNDING_NEAREST_EVEN, "nearest, ties to even"},
                  {ATTN_ROUNDING_NEAREST_AWAY, "nearest, ties away from zero"},
                  {ATTN_ROUNDING_TOWARD_ZERO, "toward zero"}});
  if (p.rounding != ATTN_ROUNDING_NEAREST_EVEN && !p.pass->chooses_provider()) {
    refuse("rounding", p.rounding, "belongs to attn_fwd and attn_bwd: leave it 0");
  }
  if (p.rounding != ATTN_ROUNDING_NEAREST_EVEN && p.kernels == ATTN_KERNELS_CK) {
    refuse("rounding", p.rounding,
           "is AITER's alone, but kernels asks for Composable Kernel's: leave one of them 0");
  }
}

void validate_lengths(Problem* problem, Pointers pointers) {
  const Problem& p = *problem;
  require_at_least("seqlen_q", p.seqlen_q, 0);
  require_at_least("seqlen_k", p.seqlen_k, 0);
  if (!is_group(p)) {
    const char* const group =
        "belongs to group mode: leave it zero, or set mode to ATTN_MODE_GROUP";
    require_unset("total_q", p.total_q, group);
    require_unset("total_k", p.total_k, group);
    require_unset("cu_seqlens_q", p.cu_seqlens_q, group);
    require_unset("cu_seqlens_k", p.cu_seqlens_k, group);
    return;
  }
  validate_total("total_q", p.total_q, p, "seqlen_q", p.seqlen_q, has_padded_queries(p));
  validate_total("total_k", p.total_k, p, "seqlen_k", p.seqlen_k, has_padded_keys(p));
  // A kernel has workgroups for the greatest length, of which a device takes so many alone: those
  // behind all rows are not asked for.
  const int32_t longest = p.seqlen_q;
  problem->seqlen_q = std::min(p.seqlen_q, p.total_q);
  if (pointers == Pointers::kIgnored) return;
  copy_array(problem, &problem->cu_seqlens_q, int64_t{p.batch} + 1);
  copy_array(problem, &problem->cu_seqlens_k, int64_t{p.batch} + 1);
  validate_cu_seqlens("cu_seqlens_q", p.cu_seqlens_q, p, "total_q", p.total_q, "seqlen_q", longest,
                      has_padded_queries(p));
  if (!p.cu_seqlens_k && may_lack_cu_seqlens_k(p)) {
    if (p.total_k != 0) refuse("total_k", p.total_k, "must be 0 without cu_seqlens_k");
    return;
  }
  // In pages no array has total_k rows: whoever does not know the sum of lengths leaves it 0.
  const bool sum_is_known = !in_pages(p) || p.total_k != 0;
  validate_cu_seqlens("cu_seqlens_k", p.cu_seqlens_k, p, "total_k",
                      sum_is_known ? std::optional(p.total_k) : std::nullopt, "seqlen_k",
                      p.seqlen_k, has_padded_keys(p));
}

void validate_scores(const attn_problem& p) {
  require_one_of("bias", p.bias,
                 {{ATTN_BIAS_NONE, "none"},
                  {ATTN_BIAS_ELEMENTWISE, "elementwise"},
                  {ATTN_BIAS_ALIBI, "ALiBi"}});
  if (!std::isfinite(p.logits_soft_cap) || p.logits_soft_cap < 0) {
    refuse("logits_soft_cap", p.logits_soft_cap, "must be finite and above 0, or 0: no cap");
  }
  if (!(p.dropout_p >= 0 && p.dropout_p < 1)) {
    refuse("dropout_p", p.dropout_p, "must be a probability below 1, or 0: no dropout");
  }
  if (p.rng_state && (p.dropout_seed != 0 || p.dropout_offset != 0)) {
    refuse(p.dropout_seed != 0 ? "dropout_seed" : "dropout_offset",
           p.dropout_seed != 0 ? p.dropout_seed : p.dropout_offset,
           "must be 0 beside rng_state, which is read instead");
  }
  if (p.reserved != 0) {
    fail(Status::kAbiMismatch, "attn_problem.reserved is ", p.reserved,
         ", but must be 0: zero the struct before you fill it in");
  }
}

}  // namespace

void copy_array(Problem* p, const int32_t** array, int64_t count) {
  const bool is_aligned = reinterpret_cast<uintptr_t>(*array) % alignof(int32_t) == 0;
  if (!*array || !is_aligned || p->device_type != ATTN_DEVICE_CPU) return;
  const std::shared_ptr<int32_t[]> copy(new int32_t[count]);
  std::copy_n(*array, count, copy.get());
  *array = copy.get();
  p->copies.push_back(copy);
}

void validate_problem(Problem* problem, Pointers pointers) {
  const Problem& p = *problem;
  const attn_kvcache& c = p.cache;
  problem->lent = {p.cu_seqlens_q, p.cu_seqlens_k, p.seqused_q,   p.seqused_k,
                   p.cu_seqused_q, p.cu_seqused_k, c.seqlens_k,   c.batch_index,
                   c.block_table,  c.page_indptr,  c.page_indices};
  validate_mode(p);
  validate_device(p);
  validate_dtype(p);
  require_at_least("batch", p.batch, 0);
  require_at_least("heads_q", p.heads_q, 1);
  require_at_least("heads_k", p.heads_k, 1);
  if (p.heads_q % p.heads_k != 0) {
    refuse("heads_k", p.heads_k, "must divide heads_q, ", p.heads_q);
  }
  require_at_least("head_size_qk", p.head_size_qk, 1);
  require_at_least("head_size_v", p.head_size_v, 1);
  if (!std::isfinite(p.softmax_scale) || p.softmax_scale <= 0) {
    refuse("softmax_scale", p.softmax_scale, "must be positive and finite, e.g. 1/sqrt(",
           p.head_size_qk, ")");
  }
  validate_mask(p);
  validate_scores(p);
  validate_kernels(p);
  validate_lengths(problem, pointers);
  validate_padding(problem, pointers);
}

void validate_bias(const Problem& p) {
  const auto only_with = [&p](int32_t bias, const char* name, const char* field, auto value) {
    if (p.bias == bias) return;
    require_unset(field, value, "the problem's bias is not ", name, ": leave it zero, or set bias");
  };
  only_with(ATTN_BIAS_ELEMENTWISE, "ATTN_BIAS_ELEMENTWISE", "bias.data", p.bias_matrix.data);
  only_with(ATTN_BIAS_ALIBI, "ATTN_BIAS_ALIBI", "alibi_slopes", p.alibi_slopes);
  only_with(ATTN_BIAS_ALIBI, "ATTN_BIAS_ALIBI", "alibi_stride_batch", p.alibi_stride_batch);
}

void refuse_fp8(const Problem& p) {
  if (is_fp8(p.dtype)) refuse("dtype", p.dtype, "fp8 is for attn_fwd alone: use fp16 or bf16");
}

void validate_min_seqlen_q(const Problem& p) {
  require_at_least("min_seqlen_q", p.min_seqlen_q, 0);
  if (p.min_seqlen_q > 0 && !is_group(p)) {
    refuse("min_seqlen_q", p.min_seqlen_q,
           "belongs to group mode: leave it 0, or set mode to ATTN_MODE_GROUP");
  }
}

void make_canonical(Problem* p) {
  for (const Operand& operand : p->pass->operands(*p)) {
    attn_tensor& t = p->*operand.tensor;
    const Extents& e = operand.extents;
    if (e.heads <= 1) t.stride_head = e.head_size;
    if (e.seq <= 1) t.stride_seq = e.heads * e.head_size;
    if (e.batch <= 1) t.stride_batch = 0;
  }
  const int64_t open = int64_t{p->seqlen_q} + p->seqlen_k;
  if (p->window_right >= open) p->window_right = -1;
  if (p->window_left < open) return;
  // An open window may make the mask causal, which ALiBi is told apart by.
  const bool keeps_side = p->bias == ATTN_BIAS_ALIBI && p->window_right == 0;
  p->window_left = keeps_side ? static_cast<int32_t>(open) : -1;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
