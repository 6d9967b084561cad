// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "ck_tile/ops/fmha/block/variants.hpp"
#include "fwd_pagedkv_dispatcher.inc"
#include "tests/dispatch/upstream_kvcache.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {

std::vector<Launch> upstream_pagedkv(const Cached& call, const Told& told) {
  auto args = cached_args_of<fmha_fwd_pagedkv_args>(call);
  args.min_seqlen_q = call.args.min_seqlen_q;
  auto traits = cached_traits_of<fmha_fwd_pagedkv_traits>(call, told);
  traits.use_pagedkv = call.cache.page_size > 0;
  traits.skip_min_seqlen_q = call.args.min_seqlen_q > 0;
  auto seen = as_told(args, told);
  fmha_fwd_pagedkv(traits, seen, ck_tile::stream_config{});
  return launches_of(args);
}

std::vector<Launch> upstream(const Cached& call, const Told& told) {
  if (call.cache.page_indptr) return upstream_batch_prefill(call, told);
  return call.splits > 0 ? upstream_splitkv(call, told) : upstream_pagedkv(call, told);
}

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity
