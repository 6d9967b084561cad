// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/compat/reading.h"

#include <algorithm>
#include <mask.hpp>

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::compat {

using runtime::fail;
using runtime::Field;
using runtime::refuse;
using runtime::Status;

Names common_names() {
  Names names = {
      {"dtype", "data_type"},
      {"heads_q", "nhead_q"},
      {"heads_k", "nhead_k"},
      {"head_size_qk", "hdim_q"},
      {"head_size_v", "hdim_v"},
      {"mask", "mask_type"},
      {"window_left", "window_size_left"},
      {"window_right", "window_size_right"},
      {"bias", "bias_type"},
      {"dropout_p", "p_drop"},
      {"rng_state", "drop_seed_offset"},
      {"dropout_seed", "drop_seed_offset"},
      {"cu_seqlens_q", "seqstart_q_ptr"},
      {"cu_seqlens_k", "seqstart_k_ptr"},
      {"seqused_q", "seqlen_q_ptr"},
      {"seqused_k", "seqlen_k_ptr"},
      {"cu_seqused_q", "cu_seqlen_q_ptr"},
      {"cu_seqused_k", "cu_seqlen_k_ptr"},
      {"total_q", "seqlen_q"},
      {"total_k", "seqlen_k"},
      {"lse", "lse_ptr"},
      {"alibi_slopes", "bias_ptr"},
      {"alibi_stride_batch", "stride_bias"},
      {"sink", "sink_ptr"},
      {"dsink", "d_sink_ptr"},
      {"kernels", "use_asm_v3"},
      {"bias_grad", "has_dbias"},
      {"deterministic", "is_deterministic"},
  };
  for (const char* tensor : {"q", "k", "v", "bias", "o", "dout", "dq", "dk", "dv", "dbias"}) {
    const std::string ours = tensor, theirs = ours == "dout" ? "do" : ours;
    names.emplace_back(ours + ".data", theirs + "_ptr");
    names.emplace_back(ours + ".stride_seq", "stride_" + theirs);
    names.emplace_back(ours + ".stride_head", "nhead_stride_" + theirs);
    names.emplace_back(ours + ".stride_batch", "batch_stride_" + theirs);
  }
  return names;
}

int32_t dtype_of(const char* field, const std::string& data_type, const char* otherwise) {
  if (data_type == "fp16") return ATTN_DTYPE_FP16;
  if (data_type == "bf16") return ATTN_DTYPE_BF16;
  refuse(field, data_type.empty() ? "\"\"" : data_type, "must be fp16 or bf16 here: for fp8 ",
         otherwise);
}

void require_null(const char* field, const void* pointer, const char* remedy) {
  if (pointer) refuse(field, pointer, "must be NULL", remedy);
}

void require_no_sink_size(int32_t sink_size) {
  if (sink_size == 0) return;
  fail(Status::kUnsupported, Field("sink_size"), " is ", sink_size, ", but must be 0: keys that ",
       "every query sees are not served; sink_ptr is");
}

void set_mask(int mask_type, int left, int right, attn_problem* p) {
  p->window_left = p->window_right = -1;
  if (mask_type == static_cast<int>(mask_enum::no_mask)) return;
  if (mask_type < 0 || mask_type > static_cast<int>(mask_enum::window_generic)) {
    refuse("mask_type", mask_type, "must be 0 (none), 1 (top left), 2 (bottom right) or 3 (a ",
           "window from the bottom right)");
  }
  // The kernels count every window but the top left one from the bottom right.
  p->mask = mask_type == static_cast<int>(mask_enum::mask_top_left) ? ATTN_MASK_TOP_LEFT
                                                                    : ATTN_MASK_BOTTOM_RIGHT;
  p->window_left = std::max<int32_t>(left, -1);
  p->window_right = std::max<int32_t>(right, -1);
}

attn_tensor tensor(const void* data, int64_t stride_batch, int64_t stride_seq,
                   int64_t stride_head) {
  return {const_cast<void*>(data), stride_batch, stride_seq, stride_head};
}

void set_lse(const LseStrides& s, attn_problem* p) {
  if (p->mode == ATTN_MODE_GROUP) {
    if (p->heads_q <= 1) return;
    if (s.head < p->total_q || s.head > INT32_MAX) {
      refuse(s.head_field, s.head, "must be at least seqlen_q, ", p->total_q,
             ": lse is [nhead_q, rows]");
    }
    p->total_q = static_cast<int32_t>(s.head);
    return;
  }
  if (p->heads_q > 1 && s.head != p->seqlen_q) {
    refuse(s.head_field, s.head, "must be seqlen_q, ", p->seqlen_q,
           ": lse is contiguous, [batch, nhead_q, seqlen_q]");
  }
  const int64_t entry = int64_t{p->heads_q} * p->seqlen_q;
  if (p->batch > 1 && s.batch != entry) {
    refuse(s.batch_field, s.batch, "must be nhead_q * seqlen_q, ", entry,
           ": lse is contiguous, [batch, nhead_q, seqlen_q]");
  }
}

}  // namespace AITER_ATTN_NAMESPACE::compat
