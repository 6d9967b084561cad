// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/compat/tests/consumer.h"

#ifdef CONSUMER_OF_QOLA
#include <qola_mha_bwd.h>
#include <qola_mha_fwd.h>
#define MHA(function) QOLA_NS(function)
#else
#include <mha_bwd.h>
#include <mha_fwd.h>
#define MHA(function) aiter::function
#endif

namespace consumer {
namespace {

ck_tile::stream_config stream_of(const Call& c) {
  return ck_tile::stream_config{static_cast<hipStream_t>(c.stream), c.timed, 0};
}

// Fields that both structs have by the same names.
template <typename Args>
void fill(const Call& c, Args* args) {
  args->use_asm_v3 = c.use_asm;
  args->v3_api_check = c.only_check;
  args->data_type = c.dtype;
  args->is_group_mode = c.group;
  args->bias_type = c.bias_type;
  args->q_ptr = c.q.data;
  args->k_ptr = c.k.data;
  args->v_ptr = c.v.data;
  args->bias_ptr = c.bias.data;
  if (c.group) {
    args->seqstart_q_ptr = c.starts_q;
    args->seqstart_k_ptr = c.starts_k;
    args->seqlen_q_ptr = c.used_q;
    args->seqlen_k_ptr = c.used_k;
  }
  args->cu_seqlen_q_ptr = c.sums_q;
  args->cu_seqlen_k_ptr = c.sums_k;
  args->seqlen_q = c.rows_q;
  args->seqlen_k = c.rows_k;
  args->batch = c.batch;
  args->max_seqlen_q = c.group ? c.longest_q : c.rows_q;
  args->hdim_q = c.size_qk;
  args->hdim_v = c.size_v;
  args->nhead_q = c.heads_q;
  args->nhead_k = c.heads_k;
  args->stride_q = c.q.row;
  args->stride_k = c.k.row;
  args->stride_v = c.v.row;
  args->stride_o = c.o.row;
  args->stride_bias = c.bias_type == 2 ? c.bias.batch : c.bias.row;
  args->nhead_stride_q = c.q.head;
  args->nhead_stride_k = c.k.head;
  args->nhead_stride_v = c.v.head;
  args->nhead_stride_o = c.o.head;
  args->nhead_stride_bias = c.bias.head;
  args->batch_stride_q = c.q.batch;
  args->batch_stride_k = c.k.batch;
  args->batch_stride_v = c.v.batch;
  args->batch_stride_o = c.o.batch;
  args->batch_stride_bias = c.bias.batch;
  args->window_size_left = c.left;
  args->window_size_right = c.right;
  args->mask_type = c.mask;
  args->p_drop = c.p_drop;
  if (c.rng_state) {
    args->drop_seed_offset = std::pair<const void*, const void*>(c.rng_state, c.rng_state + 1);
  } else {
    args->drop_seed_offset = std::pair<uint64_t, uint64_t>(c.seed, c.offset);
  }
}

template <typename Args>
auto set_sink(const Call& c, Args* args, int) -> decltype(args->sink_ptr, void()) {
  args->sink_ptr = c.sink;
}
template <typename Args>
void set_sink(const Call&, Args*, long) {}

template <typename Args>
auto set_allocator(const std::function<void*(size_t)>& allocate, Args* args, int)
    -> decltype(args->workspace_alloc, void()) {
  args->workspace_alloc = [allocate](size_t bytes, bool) { return allocate(bytes); };
}
template <typename Args>
void set_allocator(const std::function<void*(size_t)>&, Args*, long) {}

template <typename Args, typename = void>
struct Asks : std::false_type {};
template <typename Args>
struct Asks<Args, std::void_t<decltype(Args::workspace_alloc)>> : std::true_type {};

}  // namespace

float forward(const Call& c) {
  aiter::mha_fwd_args args{};
  fill(c, &args);
  args.how_v3_bf16_cvt = c.rounding;
  args.has_lse = c.wants_lse;
  args.lse_ptr = c.lse;
  args.nhead_stride_lse = c.rows_q;
  args.batch_stride_lse = c.heads_q * c.rows_q;
  args.o_ptr = c.o.data;
  args.scale_s = c.scale;
  args.logits_soft_cap = c.cap;
  args.min_seqlen_q = c.shortest_q;
  set_sink(c, &args, 0);
  return MHA(mha_fwd)(args, stream_of(c));
}

float backward(const Call& c, const std::function<void*(size_t)>& allocate) {
  aiter::mha_bwd_args args{};
  fill(c, &args);
  args.v3_atomic_fp32 = true;
  args.v3_bf16_cvt = c.rounding;
  args.has_dbias = c.wants_dbias;
  args.has_dropout = c.p_drop > 0;
  args.is_deterministic = c.deterministic;
  args.o_ptr = c.o.data;
  args.lse_ptr = c.lse;
  args.do_ptr = c.dout.data;
  args.dq_ptr = c.dq.data;
  args.dk_ptr = c.dk.data;
  args.dv_ptr = c.dv.data;
  args.dbias_ptr = c.dbias.data;
  args.max_seqlen_k = c.group ? c.longest_k : c.rows_k;
  args.scale = c.scale;
  args.p_undrop = 1 - c.p_drop;
  args.stride_do = c.dout.row;
  args.stride_dq = c.dq.row;
  args.stride_dk = c.dk.row;
  args.stride_dv = c.dv.row;
  args.stride_dbias = c.dbias.row;
  args.nhead_stride_do = c.dout.head;
  args.nhead_stride_lsed = c.rows_q;
  args.nhead_stride_dq = c.dq.head;
  args.nhead_stride_dk = c.dk.head;
  args.nhead_stride_dv = c.dv.head;
  args.nhead_stride_dbias = c.dbias.head;
  args.batch_stride_do = c.dout.batch;
  args.batch_stride_lsed = c.heads_q * c.rows_q;
  args.batch_stride_dq = c.dq.batch;
  args.batch_stride_dk = c.dk.batch;
  args.batch_stride_dv = c.dv.batch;
  args.batch_stride_dbias = c.dbias.batch;
  set_sink(c, &args, 0);
  set_allocator(allocate, &args, 0);
  return MHA(mha_bwd)(args, stream_of(c));
}

bool asks_for_workspace() { return Asks<aiter::mha_bwd_args>::value; }

}  // namespace consumer
