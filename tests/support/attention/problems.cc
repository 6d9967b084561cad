// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "tests/support/attention/problems.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "aiter/attention/reference/elements.h"

namespace AITER_ATTN_NAMESPACE::testing {

using namespace attention;
namespace {

int32_t longest(const std::vector<int32_t>& cu) {
  int32_t most = 0;
  for (size_t i = 1; i < cu.size(); ++i) most = std::max(most, cu[i] - cu[i - 1]);
  return most;
}

}  // namespace

attn_problem make_problem(const Shape& shape, attn_dtype dtype) {
  attn_problem p = {};
  p.struct_size = sizeof(p);
  p.mode = ATTN_MODE_BATCH;
  p.device_type = ATTN_DEVICE_CPU;
  p.dtype = dtype;
  p.batch = shape.batch;
  p.heads_q = shape.heads_q;
  p.heads_k = shape.heads_k;
  p.head_size_qk = shape.head_size_qk;
  p.head_size_v = shape.head_size_v;
  p.seqlen_q = shape.seqlen_q;
  p.seqlen_k = shape.seqlen_k;
  p.softmax_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_size_qk)));
  p.mask = ATTN_MASK_NONE;
  p.window_left = p.window_right = -1;
  return p;
}

namespace {

attn_problem with_lengths(const Shape& shape, attn_dtype dtype, const std::vector<int32_t>& cu_q,
                          const std::vector<int32_t>& cu_k) {
  attn_problem p = make_problem(shape, dtype);
  if (cu_q.empty()) return p;
  p.batch = static_cast<int32_t>(cu_q.size()) - 1;
  p.seqlen_q = longest(cu_q);
  p.seqlen_k = longest(cu_k);
  p.mode = ATTN_MODE_GROUP;
  p.total_q = cu_q.back();
  p.total_k = cu_k.back();
  p.cu_seqlens_q = cu_q.data();
  p.cu_seqlens_k = cu_k.data();
  return p;
}

}  // namespace

Buffer::Buffer(const Extents& e, attn_dtype dtype) : extents_(e), dtype_(dtype) {
  const size_t bytes = e.batch * e.seq * e.heads * e.head_size * dtype_size(dtype);
  memory_.resize(bytes / sizeof(Block) + 1);
}

attn_tensor Buffer::tensor() const {
  const Extents& e = extents_;
  return {const_cast<Block*>(memory_.data()), e.seq * e.heads * e.head_size, e.heads * e.head_size,
          e.head_size};
}

int64_t Buffer::offset(int64_t b, int64_t i, int64_t h, int64_t c) const {
  const attn_tensor t = tensor();
  return b * t.stride_batch + i * t.stride_seq + h * t.stride_head + c;
}

double Buffer::get(int64_t b, int64_t i, int64_t h, int64_t c) const {
  double value;
  load_row(tensor(), dtype_, offset(b, i, h, c), 1, &value);
  return value;
}

void Buffer::set(int64_t b, int64_t i, int64_t h, int64_t c, double value) {
  store_row(tensor(), dtype_, offset(b, i, h, c), 1, &value);
}

void Buffer::randomise(std::mt19937* random) {
  std::normal_distribution<double> normal;
  const int64_t count = extents_.batch * extents_.seq * extents_.heads * extents_.head_size;
  for (int64_t i = 0; i < count; ++i) {
    const double value = normal(*random);
    store_row(tensor(), dtype_, i, 1, &value);
  }
}

void Buffer::fill(double value) {
  const int64_t count = extents_.batch * extents_.seq * extents_.heads * extents_.head_size;
  for (int64_t i = 0; i < count; ++i) store_row(tensor(), dtype_, i, 1, &value);
}

TestProblem::TestProblem(const Shape& shape, attn_dtype dtype, uint32_t seed,
                         std::vector<int32_t> cu_q, std::vector<int32_t> cu_k)
    : cu_seqlens_q(std::move(cu_q)),
      cu_seqlens_k(std::move(cu_k)),
      problem(with_lengths(shape, dtype, cu_seqlens_q, cu_seqlens_k)),
      q(query_extents(problem, problem.head_size_qk), dtype),
      k(key_extents(problem, problem.heads_k, problem.head_size_qk), dtype),
      v(key_extents(problem, problem.heads_k, problem.head_size_v), dtype),
      o(query_extents(problem, problem.head_size_v), dtype),
      dout(o.extents(), dtype),
      dq(q.extents(), dtype),
      dk(k.extents(), dtype),
      dv(v.extents(), dtype),
      lse(query_rows(problem) * problem.heads_q) {
  std::mt19937 random(seed);
  for (Buffer* buffer : {&q, &k, &v, &dout}) buffer->randomise(&random);
}

void TestProblem::add_bias(uint32_t seed) {
  problem.bias = ATTN_BIAS_ELEMENTWISE;
  std::mt19937 random(seed);
  for (std::optional<Buffer>* buffer : {&bias, &dbias}) {
    buffer->emplace(score_extents(problem), static_cast<attn_dtype>(bias_dtype(problem)));
    (*buffer)->randomise(&random);
  }
}

void TestProblem::add_slopes() {
  problem.bias = ATTN_BIAS_ALIBI;
  for (int i = 0; i < problem.batch * problem.heads_q; ++i) slopes.push_back(0.05f * (i + 1));
}

void TestProblem::turn_v() {
  const Extents e = v.extents();
  v_columns.emplace(Extents{e.batch, e.head_size, e.heads, e.seq, e.head_size},
                    static_cast<attn_dtype>(problem.dtype));
  for (int64_t b = 0; b < e.batch; ++b) {
    for (int64_t j = 0; j < e.seq; ++j) {
      for (int64_t h = 0; h < e.heads; ++h) {
        for (int64_t c = 0; c < e.head_size; ++c) v_columns->set(b, c, h, j, v.get(b, j, h, c));
      }
    }
  }
}

void TestProblem::set_o_dtype(attn_dtype dtype) {
  o = Buffer(o.extents(), dtype);
  o_dtype = dtype;
}

template <typename Args>
void TestProblem::set_bias(Args* args) {
  if (bias) args->bias = bias->tensor();
  if (slopes.empty()) return;
  args->alibi_slopes = slopes.data();
  args->alibi_stride_batch = problem.heads_q;
}

attn_fwd_args TestProblem::fwd() {
  attn_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = &problem;
  args.q = q.tensor();
  args.k = k.tensor();
  args.v = v.tensor();
  args.o = o.tensor();
  args.lse = lse.data();
  set_bias(&args);
  if (is_fp8(problem.dtype)) {
    args.descale_q = args.descale_k = args.descale_v = 1;
    args.scale_o = o_dtype ? 0 : 1;
  }
  args.o_dtype = o_dtype;
  if (v_columns) {
    args.v = v_columns->tensor();
    args.v_layout = ATTN_V_COLUMNS;
  }
  return args;
}

attn_bwd_args TestProblem::bwd() {
  attn_bwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = &problem;
  args.q = q.tensor();
  args.k = k.tensor();
  args.v = v.tensor();
  args.o = o.tensor();
  args.dout = dout.tensor();
  args.lse = lse.data();
  args.dq = dq.tensor();
  args.dk = dk.tensor();
  args.dv = dv.tensor();
  set_bias(&args);
  if (dbias) {
    args.dbias = dbias->tensor();
    args.bias_grad = 1;
  }
  return args;
}

}  // namespace AITER_ATTN_NAMESPACE::testing
