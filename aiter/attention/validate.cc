// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/validate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "aiter/attention/error.h"
#include "aiter/attention/validate_append.h"
#include "aiter/attention/validate_cache.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

void require_at_least(const char* field, int32_t value, int32_t least) {
  if (value < least) refuse(field, value, "must be at least ", least);
}

void validate_mode(const attn_problem& p) {
  if (p.mode != ATTN_MODE_BATCH && p.mode != ATTN_MODE_GROUP) {
    refuse("mode", p.mode, "must be ATTN_MODE_BATCH (", static_cast<int>(ATTN_MODE_BATCH),
           ") or ATTN_MODE_GROUP (", static_cast<int>(ATTN_MODE_GROUP), ")");
  }
}

void validate_device(const attn_problem& p) {
  switch (p.device_type) {
    case ATTN_DEVICE_CPU:
      if (p.device_id != 0) refuse("device_id", p.device_id, "must be 0 on the CPU");
      return;
    case ATTN_DEVICE_ROCM:
      require_at_least("device_id", p.device_id, 0);
      return;
    default:
      refuse("device_type", p.device_type, "must be ", static_cast<int>(ATTN_DEVICE_CPU),
             " (CPU) or ", static_cast<int>(ATTN_DEVICE_ROCM), " (ROCm)");
  }
}

void validate_dtype(const attn_problem& p) {
  switch (p.dtype) {
    case ATTN_DTYPE_FP16:
    case ATTN_DTYPE_BF16:
    case ATTN_DTYPE_FP8_E4M3:
    case ATTN_DTYPE_FP8_E4M3_FNUZ:
      return;
    case ATTN_DTYPE_FP32:
      if (p.device_type != ATTN_DEVICE_CPU) {
        fail(Status::kUnsupported, Field("dtype"),
             " is fp32, which only the CPU reference computes: use fp16 or bf16 on the GPU");
      }
      return;
    default:
      refuse("dtype", p.dtype, "must be ", static_cast<int>(ATTN_DTYPE_FP16), " (fp16), ",
             static_cast<int>(ATTN_DTYPE_BF16), " (bf16), ", static_cast<int>(ATTN_DTYPE_FP32),
             " (fp32), ", static_cast<int>(ATTN_DTYPE_FP8_E4M3), " (fp8 e4m3) or ",
             static_cast<int>(ATTN_DTYPE_FP8_E4M3_FNUZ), " (fp8 e4m3 fnuz)");
  }
}

void validate_mask(const attn_problem& p) {
  const bool none = p.mask == ATTN_MASK_NONE;
  if (!none && p.mask != ATTN_MASK_TOP_LEFT && p.mask != ATTN_MASK_BOTTOM_RIGHT) {
    refuse("mask", p.mask, "must be ", static_cast<int>(ATTN_MASK_NONE), " (none), ",
           static_cast<int>(ATTN_MASK_TOP_LEFT), " (top left) or ",
           static_cast<int>(ATTN_MASK_BOTTOM_RIGHT), " (bottom right)");
  }
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
                    int32_t seqlen) {
  require_at_least(field, total, 0);
  if (total > int64_t{p.batch} * seqlen) {
    refuse(field, total, "cannot exceed batch (", p.batch, ") times ", longest, " (", seqlen,
           "), the greatest length");
  }
}

void validate_cu_seqlens(const char* field, const int32_t* cu, const attn_problem& p,
                         const char* total_field, std::optional<int32_t> total, const char* longest,
                         int32_t seqlen) {
  if (!cu) {
    refuse(field, "NULL", "group mode needs batch + 1 = ", int64_t{p.batch} + 1,
           " offsets in the memory of the device");
  }
  if (reinterpret_cast<uintptr_t>(cu) % alignof(int32_t) != 0) {
    refuse(field, cu, "must be aligned to 4 bytes");
  }
  if (p.device_type != ATTN_DEVICE_CPU) return;
  if (cu[0] != 0) refuse({concat(field, "[0]"), 0}, cu[0], "must be 0");
  for (int32_t i = 0; i < p.batch; ++i) {
    const int64_t length = int64_t{cu[i + 1]} - cu[i];
    if (length < 0) {
      refuse({concat(field, "[", i + 1, "]"), i}, cu[i + 1],
             "must not be less than the one before, ", cu[i]);
    }
    if (length > seqlen) {
      refuse({concat(field, "[", i + 1, "] - ", field, "[", i, "]"), i}, length, "must not exceed ",
             longest, ", ", seqlen);
    }
  }
  if (total && cu[p.batch] != *total) {
    refuse(concat(field, "[", p.batch, "]"), cu[p.batch], "must equal ", total_field, ", ", *total);
  }
}

// Whether cu_seqlens_k may be absent: pages say where keys are.
bool may_lack_cu_seqlens_k(const Problem& p) {
  return in_pages(p) && (p.cache.seqlens_k || p.cache.page_indptr);
}

void validate_lengths(Problem* problem, Pointers pointers) {
  const Problem& p = *problem;
  require_at_least("seqlen_q", p.seqlen_q, 0);
  require_at_least("seqlen_k", p.seqlen_k, 0);
  if (!is_group(p)) {
    const auto group_only = [](const char* field, bool set) {
      if (set) {
        fail(Status::kInvalidArgument, Field(field),
             " is set, but belongs to group mode: leave it zero, or set mode to ATTN_MODE_GROUP");
      }
    };
    group_only("total_q", p.total_q != 0);
    group_only("total_k", p.total_k != 0);
    group_only("cu_seqlens_q", p.cu_seqlens_q != nullptr);
    group_only("cu_seqlens_k", p.cu_seqlens_k != nullptr);
    return;
  }
  validate_total("total_q", p.total_q, p, "seqlen_q", p.seqlen_q);
  validate_total("total_k", p.total_k, p, "seqlen_k", p.seqlen_k);
  if (pointers == Pointers::kIgnored) return;
  copy_array(problem, &problem->cu_seqlens_q, int64_t{p.batch} + 1);
  copy_array(problem, &problem->cu_seqlens_k, int64_t{p.batch} + 1);
  validate_cu_seqlens("cu_seqlens_q", p.cu_seqlens_q, p, "total_q", p.total_q, "seqlen_q",
                      p.seqlen_q);
  if (!p.cu_seqlens_k && may_lack_cu_seqlens_k(p)) {
    if (p.total_k != 0) refuse("total_k", p.total_k, "must be 0 without cu_seqlens_k");
    return;
  }
  // In pages no array has total_k rows: whoever does not know the sum of lengths leaves it 0.
  const bool sum_is_known = !in_pages(p) || p.total_k != 0;
  validate_cu_seqlens("cu_seqlens_k", p.cu_seqlens_k, p, "total_k",
                      sum_is_known ? std::optional(p.total_k) : std::nullopt, "seqlen_k",
                      p.seqlen_k);
}

void validate_scores(const attn_problem& p) {
  if (p.bias != ATTN_BIAS_NONE && p.bias != ATTN_BIAS_ELEMENTWISE && p.bias != ATTN_BIAS_ALIBI) {
    refuse("bias", p.bias, "must be ", static_cast<int>(ATTN_BIAS_NONE), " (none), ",
           static_cast<int>(ATTN_BIAS_ELEMENTWISE), " (elementwise) or ",
           static_cast<int>(ATTN_BIAS_ALIBI), " (ALiBi)");
  }
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

void validate_problem(Problem* problem, Pointers pointers) {
  const Problem& p = *problem;
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
  validate_lengths(problem, pointers);
}

void set_lent(Problem* p) {
  const attn_kvcache& c = p->cache;
  p->lent = {p->cu_seqlens_q, p->cu_seqlens_k, c.seqlens_k,   c.batch_index,
             c.block_table,   c.page_indptr,   c.page_indices};
}

void validate_flag(const char* field, int32_t value) {
  if (value != 0 && value != 1) refuse(field, value, "must be 0 or 1");
}

// What the args have of a bias is what the problem says.
void validate_bias(const Problem& p) {
  const auto only_with = [](const char* field, const char* bias) {
    fail(Status::kInvalidArgument, Field(field), " is set, but the problem's bias is not ", bias,
         ": leave it zero, or set bias");
  };
  if (p.bias != ATTN_BIAS_ELEMENTWISE && p.bias_matrix.data) {
    only_with("bias.data", "ATTN_BIAS_ELEMENTWISE");
  }
  if (p.bias != ATTN_BIAS_ALIBI && p.alibi_slopes) only_with("alibi_slopes", "ATTN_BIAS_ALIBI");
  if (p.bias != ATTN_BIAS_ALIBI && p.alibi_stride_batch != 0) {
    only_with("alibi_stride_batch", "ATTN_BIAS_ALIBI");
  }
  if (p.bias_grad && p.bias != ATTN_BIAS_ELEMENTWISE) {
    refuse("bias_grad", 1, "must be 0, as the problem's bias is not ATTN_BIAS_ELEMENTWISE");
  }
  if (!p.bias_grad && p.dbias.data) {
    fail(Status::kInvalidArgument, Field("dbias.data"),
         " is set, but bias_grad is 0: leave it zero, or set bias_grad to 1");
  }
  constexpr int32_t kAll = ATTN_DBIAS_SUM_BATCH | ATTN_DBIAS_SUM_HEADS | ATTN_DBIAS_SUM_QUERIES;
  if (p.dbias_sums & ~kAll) {
    refuse("dbias_sums", p.dbias_sums, "must be a sum of ", int{ATTN_DBIAS_SUM_BATCH}, " (batch), ",
           int{ATTN_DBIAS_SUM_HEADS}, " (heads) and ", int{ATTN_DBIAS_SUM_QUERIES}, " (queries)");
  }
  if (p.dbias_sums && !p.bias_grad) {
    refuse("dbias_sums", p.dbias_sums, "must be 0, as bias_grad is 0");
  }
  if (is_group(p) && sums_dbias(p, ATTN_DBIAS_SUM_BATCH)) {
    refuse("dbias_sums", p.dbias_sums, "must be without ", int{ATTN_DBIAS_SUM_BATCH},
           " (batch) in group mode, whose dbias has no entry for each sequence");
  }
}

// The scales of fp8, and v's layout.
void validate_fp8(const Problem& p) {
  if (p.v_layout != ATTN_V_ROWS && p.v_layout != ATTN_V_COLUMNS) {
    refuse("v_layout", p.v_layout, "must be ", static_cast<int>(ATTN_V_ROWS), " (rows) or ",
           static_cast<int>(ATTN_V_COLUMNS), " (columns)");
  }
  const bool fp8 = is_fp8(p.dtype);
  if (fp8 && p.direction != Direction::kForward) {
    refuse("dtype", p.dtype, "fp8 is for attn_fwd alone: use fp16 or bf16");
  }
  if (p.v_layout == ATTN_V_COLUMNS && (!fp8 || is_group(p))) {
    refuse("v_layout", p.v_layout, "columns are for fp8 in batch mode: set it to ",
           static_cast<int>(ATTN_V_ROWS), " (rows)");
  }
  for (const auto& [field, scale] :
       {std::pair("descale_q", p.descale_q), std::pair("descale_k", p.descale_k),
        std::pair("descale_v", p.descale_v), std::pair("scale_o", p.scale_o)}) {
    if (fp8 && !(std::isfinite(scale) && scale > 0)) {
      refuse(field, scale, "fp8 needs a positive and finite scale: 1 where there is none");
    }
    if (!fp8 && scale != 0) refuse(field, scale, "belongs to fp8: leave it 0");
  }
  if (!fp8) return;
  const auto require_normal = [](const char* product, double value) {
    if (value < std::numeric_limits<float>::min() || value > std::numeric_limits<float>::max()) {
      refuse(product, value, "must be a normal number in fp32: choose other scales");
    }
  };
  require_normal("softmax_scale * descale_q * descale_k", score_scale(p));
  require_normal("descale_v * scale_o", output_scale(p));
  if (p.device_type != ATTN_DEVICE_CPU && p.v_layout != ATTN_V_COLUMNS) {
    fail(Status::kUnsupported, Field("v_layout"), " is ", p.v_layout,
         " (rows), but Composable Kernel's fp8 ",
         "kernels take columns: pass v as [batch, heads_k, head_size_v, seqlen_k] with v_layout ",
         static_cast<int>(ATTN_V_COLUMNS));
  }
}

void validate_forward(const Problem& p) {
  require_at_least("min_seqlen_q", p.min_seqlen_q, 0);
  if (p.min_seqlen_q > 0 && !is_group(p)) {
    refuse("min_seqlen_q", p.min_seqlen_q,
           "belongs to group mode: leave it 0, or set mode to ATTN_MODE_GROUP");
  }
}

void validate_backward(const Problem& p) {
  if (p.logits_soft_cap > 0 && p.device_type != ATTN_DEVICE_CPU) {
    fail(Status::kUnsupported, Field("logits_soft_cap"), " is ", p.logits_soft_cap,
         ", but Composable Kernel has no backward kernel with a cap: pass arrays in host memory, ",
         "or compute without a cap");
  }
}

// Kernels narrow strides to 32 bits even where they mean nothing, and some size their bounds checks
// by them; they add to windows in 32 bits.
void make_canonical(Problem* p) {
  for (const Operand& operand : Operands(*p)) {
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

Problem validated(Problem p, Pointers pointers) {
  set_lent(&p);
  validate_problem(&p, pointers);
  validate_bias(p);
  validate_fp8(p);
  is_backward(p) ? validate_backward(p) : validate_forward(p);
  if (has_cache(p)) validate_cache(&p, pointers);
  p.spare_lse = p.direction == Direction::kForward && !p.lse && p.device_type != ATTN_DEVICE_CPU &&
                (p.workspace || pointers == Pointers::kIgnored);
  make_canonical(&p);
  return p;
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

Problem validated(const attn_fwd_args& args, const attn_problem& problem, Pointers pointers) {
  Problem p = {problem, Direction::kForward, args.q, args.k, args.v, args.o};
  p.lse = args.lse;
  p.bias_matrix = args.bias;
  p.alibi_slopes = args.alibi_slopes;
  p.alibi_stride_batch = args.alibi_stride_batch;
  p.min_seqlen_q = args.min_seqlen_q;
  p.v_layout = args.v_layout;
  p.descale_q = args.descale_q;
  p.descale_k = args.descale_k;
  p.descale_v = args.descale_v;
  p.scale_o = args.scale_o;
  p.workspace = args.workspace;
  p.workspace_size = args.workspace_size;
  return validated(p, pointers);
}

Problem validated(const attn_bwd_args& args, const attn_problem& problem, Pointers pointers) {
  validate_flag("bias_grad", args.bias_grad);
  validate_flag("deterministic", args.deterministic);
  Problem p = {
      problem, Direction::kBackward, args.q, args.k, args.v, args.o, args.dout, args.dq, args.dk,
      args.dv};
  p.lse = const_cast<float*>(args.lse);  // read only, in this direction
  p.workspace = args.workspace;
  p.workspace_size = args.workspace_size;
  p.bias_matrix = args.bias;
  p.alibi_slopes = args.alibi_slopes;
  p.alibi_stride_batch = args.alibi_stride_batch;
  p.dbias = args.dbias;
  p.bias_grad = args.bias_grad != 0;
  p.dbias_sums = args.dbias_sums;
  p.deterministic = args.deterministic != 0;
  return validated(p, pointers);
}

Problem validated(const attn_kvcache_fwd_args& args, const attn_problem& problem,
                  const attn_kvcache& cache, Pointers pointers) {
  Problem p = {problem, Direction::kKvcacheForward, args.q, args.k, args.v, args.o};
  p.lse = args.lse;
  p.workspace = args.workspace;
  p.workspace_size = args.workspace_size;
  p.alibi_slopes = args.alibi_slopes;
  p.alibi_stride_batch = args.alibi_stride_batch;
  p.min_seqlen_q = args.min_seqlen_q;
  p.cache = cache;
  p.splits = args.splits;
  return validated(p, pointers);
}

Problem validated(const attn_append_kv_args& args, const attn_problem& problem,
                  const attn_kvcache& cache, Pointers pointers) {
  Problem p = {problem, Direction::kAppendKv, args.q, args.k, args.v};
  p.cache = cache;
  p.k_new = args.k_new;
  p.v_new = args.v_new;
  p.seqlen_new = args.seqlen_new;
  p.rotary = args.rotary;
  p.rotary_size = args.rotary_size;
  p.rotary_length = args.rotary_length;
  p.rotary_cos = args.rotary_cos;
  p.rotary_sin = args.rotary_sin;
  validate_append_mode(p);
  set_lent(&p);
  validate_problem(&p, pointers);
  validate_fp8(p);
  // What else attention does with the cache is no matter here.
  p.bias = ATTN_BIAS_NONE;
  p.logits_soft_cap = p.dropout_p = 0;
  validate_append(p, pointers);
  validate_cache(&p, pointers);
  validate_appended_places(p, pointers);
  make_canonical(&p);
  return p;
}

Problem validated(const attn_dropout_mask_args& args, const attn_problem& problem,
                  Pointers pointers) {
  Problem p = {problem, Direction::kDropoutMask};
  p.kept = args.kept;
  set_lent(&p);
  validate_problem(&p, pointers);
  p.bias = ATTN_BIAS_NONE;  // attention's alone
  return p;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
