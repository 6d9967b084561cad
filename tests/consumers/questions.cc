// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// QoLA's questions, about the consumer's calls.
#include <qola_mha_bwd.h>
#include <qola_mha_fwd.h>

#include "aiter/compat/tests/consumer.h"

#define PASTE_(prefix, name) prefix##_##name
#define PASTE(prefix, name) PASTE_(prefix, name)
#define EXPORTED(name) __attribute__((visibility("default"))) PASTE(consumer, name)

namespace {

// Without tensors: whoever asks has none yet.
aiter::mha_fwd_args shape_of(const consumer::Call& c) {
  aiter::mha_fwd_args a{};
  a.data_type = c.dtype;
  a.is_group_mode = c.group;
  a.bias_type = c.bias_type;
  a.has_lse = true;
  a.seqlen_q = c.rows_q;
  a.seqlen_k = c.rows_k;
  a.batch = c.batch;
  a.max_seqlen_q = c.group ? c.longest_q : c.rows_q;
  a.hdim_q = c.size_qk;
  a.hdim_v = c.size_v;
  a.nhead_q = c.heads_q;
  a.nhead_k = c.heads_k;
  a.scale_s = c.scale;
  a.stride_q = c.q.row;
  a.stride_k = c.k.row;
  a.stride_v = c.v.row;
  a.stride_o = c.o.row;
  a.nhead_stride_q = c.q.head;
  a.nhead_stride_k = c.k.head;
  a.nhead_stride_v = c.v.head;
  a.nhead_stride_o = c.o.head;
  a.nhead_stride_lse = c.rows_q;
  a.batch_stride_q = c.q.batch;
  a.batch_stride_k = c.k.batch;
  a.batch_stride_v = c.v.batch;
  a.batch_stride_o = c.o.batch;
  a.batch_stride_lse = c.heads_q * c.rows_q;
  a.mask_type = c.mask;
  a.window_size_left = c.left;
  a.window_size_right = c.right;
  return a;
}

}  // namespace

extern "C" {

size_t EXPORTED(bwd_workspace_size)(const consumer::Call* c) {
  fmha_bwd_traits t{};
  t.seqlen_q = c->rows_q;
  t.seqlen_k = c->rows_k;
  t.batch = c->batch;
  t.max_seqlen_q = c->group ? c->longest_q : c->rows_q;
  t.max_seqlen_k = c->group ? c->longest_k : c->rows_k;
  t.hdim_q = c->size_qk;
  t.hdim_v = c->size_v;
  t.nhead_q = c->heads_q;
  t.nhead_k = c->heads_k;
  t.data_type = c->dtype;
  t.is_group_mode = c->group;
  t.mask_type = static_cast<mask_enum>(c->mask);
  t.bias_type = static_cast<bias_enum>(c->bias_type);
  t.has_dbias = c->wants_dbias;
  t.has_dropout = c->p_drop > 0;
  t.is_deterministic = c->deterministic;
  return QOLA_NS(mha_bwd_workspace_size)(t);
}

int EXPORTED(serves_sinks)(const consumer::Call* c) {
  return QOLA_NS(mha_fwd_with_sink_supported)(shape_of(*c));
}

// QoLA's first version of the function.
float EXPORTED(forward_on)(const consumer::Call* c, void* stream) {
  aiter::mha_fwd_args a = shape_of(*c);
  a.q_ptr = c->q.data;
  a.k_ptr = c->k.data;
  a.v_ptr = c->v.data;
  a.o_ptr = c->o.data;
  a.lse_ptr = c->lse;
  return QOLA_NS(mha_fwd)(a, static_cast<hipStream_t>(stream));
}

#ifdef HAS_SPLITS
int EXPORTED(splits)(const consumer::Call* c) {
  const aiter::mha_fwd_args a = shape_of(*c);
  if (aiter::mha_fwd_calculate_num_splits(a) != QOLA_NS(mha_fwd_calculate_num_splits)(a) ||
      aiter::mha_fwd_workspace_size(a) != QOLA_NS(mha_fwd_workspace_size)(a)) {
    return -1;
  }
  return QOLA_NS(mha_fwd_calculate_num_splits)(a);
}

size_t EXPORTED(fwd_workspace_size)(const consumer::Call* c) {
  return QOLA_NS(mha_fwd_workspace_size)(shape_of(*c));
}
#endif
}
