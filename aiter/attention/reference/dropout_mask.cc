// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "aiter/attention/reference/dropout.h"
#include "aiter/attention/reference/heads.h"
#include "aiter/attention/reference/reference.h"
#include "aiter/attention/reference/sequence.h"
#include "aiter/runtime/parallel.h"

namespace AITER_ATTN_NAMESPACE::attention {

void reference_dropout_mask(const Problem& p) {
  const double steps = 1.0 * query_rows(p) * p.heads_q * p.seqlen_k;
  for_each_head(p, p.heads_q, steps,
                [&](const Problem&, const Sequence& s, int64_t head, runtime::Pulse& pulse) {
                  const Dropout dropout(p, s.batch, head);
                  for (int64_t i = 0; i < s.queries; ++i) {
                    uint8_t* const row = p.kept + s.lse(head, i) * p.seqlen_k;
                    std::fill(row, row + p.seqlen_k, uint8_t{0});
                    in_parts({0, s.keys}, 1, pulse, [&](int64_t begin, int64_t end) {
                      for (int64_t j = begin; j < end; ++j) row[j] = dropout.keeps(i, j);
                    });
                  }
                });
}

}  // namespace AITER_ATTN_NAMESPACE::attention
