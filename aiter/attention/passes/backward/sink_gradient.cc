// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

#include "aiter/attention/passes/backward/compute.h"
#include "aiter/attention/reference/elements.h"
#include "aiter/attention/reference/sequence.h"
#include "aiter/runtime/parallel.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

// The sink's weight in a row is exp(sink - lse), and its value is 0: so the gradient of its score
// is that weight times 0 - delta. Dropout is in o, and so in delta.
double gradient_of_head(const Problem& p, int64_t head, runtime::Pulse& pulse) {
  std::vector<double> o(p.head_size_v), dout(p.head_size_v);
  double sum = 0;
  // There may be billions of entries without a query.
  for (int32_t batch = 0; query_rows(p) != 0 && batch < p.batch; ++batch) {
    pulse(1);
    const Sequence s(p, batch);
    for (int64_t i = 0; i < s.queries; ++i) {
      pulse(2 * int64_t{p.head_size_v});
      const double lse = p.lse[s.lse(head, i)];
      if (lse == -std::numeric_limits<double>::infinity()) continue;
      load_row(p.o, p.dtype, s.query_row(p.o, head, i), p.head_size_v, o.data());
      load_row(p.dout, p.dtype, s.query_row(p.dout, head, i), p.head_size_v, dout.data());
      double delta = 0;
      for (int32_t c = 0; c < p.head_size_v; ++c) delta += o[c] * dout[c];
      sum -= std::exp(p.sink[head] - lse) * delta;
    }
  }
  return sum;
}

}  // namespace

void compute_dsink(const Problem& p) {
  const double steps = 2.0 * query_rows(p) * p.heads_q * p.head_size_v;
  const Scratch scratch = backward_scratch(p);
  try {
    runtime::parallel_for({p.heads_q, steps, scratch.bytes()},
                          [&](int64_t head, runtime::Pulse& pulse) {
                            p.dsink[head] = static_cast<float>(gradient_of_head(p, head, pulse));
                          });
  } catch (const std::bad_alloc&) {
    scratch.refuse();
  }
}

}  // namespace AITER_ATTN_NAMESPACE::attention
