// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The consumer of consumer.h on ck_fused_attn.h.
#include <exception>

#include "aiter/compat/tests/consumer.h"
#include "tests/consumers/ck_fused_attn.h"

namespace consumer {
namespace {

using ck_fused_attn::Operand;
using ck_fused_attn::Problem;
using ck_fused_attn::Stream;

Problem problem_of(const Call& c) {
  Problem p;
  p.dtype = c.dtype;
  p.batch = c.batch;
  p.heads = c.heads_q;
  p.groups = c.heads_k;
  p.size_qk = c.size_qk;
  p.size_v = c.size_v;
  p.packed = c.group;
  p.rows_q = c.group ? c.longest_q : c.rows_q;
  p.rows_kv = c.group ? c.longest_k : c.rows_k;
  p.all_q = c.rows_q;
  p.all_kv = c.rows_k;
  p.padded_starts_q = c.starts_q;
  p.padded_starts_kv = c.starts_k;
  p.starts_q = c.sums_q ? c.sums_q : c.starts_q;
  p.starts_kv = c.sums_k ? c.sums_k : c.starts_k;
  p.bias_kind = c.bias_type;
  p.bias_entries = c.bias.batch ? c.batch : 1;
  p.bias_heads = c.bias.head ? c.heads_q : 1;
  p.mask = c.mask;
  p.left = c.left;
  p.right = c.right;
  p.scale = c.scale;
  p.drop = c.p_drop;
  p.seed = c.rng_state;
  p.offset = c.rng_state ? c.rng_state + 1 : nullptr;
  p.v3 = c.use_asm;
  p.v3_rounding = c.rounding;
  p.deterministic = c.deterministic;
  return p;
}

Operand operand(const Tensor& t) { return {t.data, t.batch, t.row, t.head}; }

Stream stream_of(const Call& c) { return {c.stream, c.timed, c.only_check}; }

}  // namespace

float forward(const Call& c) {
  try {
    return ck_fused_attn::forward(problem_of(c), stream_of(c), operand(c.q), operand(c.k),
                                  operand(c.v), c.bias.data, operand(c.o),
                                  c.wants_lse ? c.lse : nullptr);
  } catch (const std::exception&) {
    return -1;
  }
}

float backward(const Call& c, const std::function<void*(size_t)>& allocate) {
  try {
    return ck_fused_attn::backward(problem_of(c), stream_of(c), operand(c.q), operand(c.k),
                                   operand(c.v), c.bias.data, operand(c.o), c.lse, operand(c.dout),
                                   operand(c.dq), operand(c.dk), operand(c.dv), c.dbias.data,
                                   allocate);
  } catch (const std::exception&) {
    return -1;
  }
}

bool asks_for_workspace() { return true; }

}  // namespace consumer
