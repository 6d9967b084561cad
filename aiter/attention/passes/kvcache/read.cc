// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "aiter/attention/passes/kvcache/kvcache.h"
#include "aiter/attention/problem/checks.h"
#include "aiter/attention/problem/validate.h"
#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

// Upstream's kernels over single keys go by page_indptr alone, and address all of the cache at
// once.
void validate_page_list_on_gpu(const Problem& p) {
  const auto has_none = [](const char* field, int64_t value, const char* what) {
    fail(Status::kUnsupported, Field(field), " is ", value, ", but kernels over page_indptr ",
         what);
  };
  if (p.splits > 1) has_none("splits", p.splits, "do not split keys: pass 0 or 1");
  if (p.min_seqlen_q > 0) has_none("min_seqlen_q", p.min_seqlen_q, "leave no sequence out: pass 0");
  // docs/races.md, M.
  if (p.window_left >= 0 && p.window_left < int64_t{p.seqlen_q} + p.seqlen_k) {
    has_none("window_left", p.window_left,
             "begin with a sequence's first key: pass -1, or a block_table");
  }
  if (p.cache.seqlens_k) {
    fail(Status::kUnsupported, Field("seqlens_k"),
         " is set, but kernels over page_indptr take its differences ",
         "as lengths: pass NULL, and a page_indptr that says them");
  }
  const auto validate_reach = [&p](const char* field, int64_t stride, int32_t head_size) {
    if (p.cache.entries < 2 || stride < 0) return;
    const int64_t most = (kMaxInt32 - head_size) / (p.cache.entries - 1);
    if (stride <= most) return;
    refuse(field, stride, "over ", p.cache.entries, " entries it exceeds the ", kMaxInt32,
           " elements that a GPU kernel over page_indptr can address: pass part of the cache");
  };
  validate_reach("k.stride_batch", p.k.stride_batch, p.head_size_qk);
  validate_reach("v.stride_batch", p.v.stride_batch, p.head_size_v);
}

// Refuses calls that Composable Kernel has no kernel for, or computes in 32 bits.
void validate_on_gpu(const Problem& p) {
  if (p.splits > kernels::kMostSplits) {
    fail(Status::kUnsupported, Field("splits"), " is ", p.splits, ", but kernels combine up to ",
         kernels::kMostSplits, ": pass that, or 0 for as many as fill the GPU");
  }
  if (p.splits > 1 && p.min_seqlen_q > 0) {
    fail(Status::kUnsupported, Field("splits"), " is ", p.splits,
         ", but kernels that leave sequences out, as ",
         "min_seqlen_q asks, do not split keys: pass 1");
  }
  if (p.min_seqlen_q > 0 && query_rows(p) != 0 && !has_keys(p)) {
    fail(Status::kUnsupported, Field("min_seqlen_q"), " is ", p.min_seqlen_q,
         ", but without any key no kernel runs that could tell which sequences it leaves out: ",
         "leave the call out, or pass 0");
  }
  if (in_pages(p) && in_page_list(p)) validate_page_list_on_gpu(p);
}

void validate_attention(const Problem& p) {
  constexpr int32_t kMostSplits = 128;
  if (p.splits < 0 || p.splits > kMostSplits) {
    refuse("splits", p.splits, "must be from 1 to ", kMostSplits,
           ", or 0: as many as fill the GPU");
  }
  if (p.device_type != ATTN_DEVICE_CPU) validate_on_gpu(p);
  const auto has_none = [](const char* field, bool set, const char* what) {
    require_unset(field, set, "attention over a cache has no ", what,
                  ": leave it 0, or gather the keys and call attn_fwd");
  };
  has_none("dropout_p", p.dropout_p > 0, "dropout");
  has_none("bias", p.bias == ATTN_BIAS_ELEMENTWISE, "elementwise bias");
}

}  // namespace

Problem read(const attn_kvcache_fwd_args* given, Pointers pointers) {
  Problem p = read_problem(given, kvcache_pass());
  validate_problem(&p, pointers);
  validate_bias(p);
  refuse_fp8(p);
  validate_min_seqlen_q(p);
  validate_places(p);
  validate_attention(p);
  validate_arrays(&p, pointers);
  make_canonical(&p);
  return p;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
