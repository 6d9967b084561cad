// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/reference/heads.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <new>
#include <vector>

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

// The batch entries that have rows to be written. There may be billions of others.
class Entries {
 public:
  Entries(const Problem& p, bool writes_keys) {
    if (query_rows(p) == 0 && (!writes_keys || key_rows(p) == 0)) return;
    count_ = p.batch;
    if (!is_group(p) && !is_padded(p)) return;
    for (int32_t i = 0; i < p.batch; ++i) {
      const Sequence sequence(p, i);
      if (sequence.queries != 0 || (writes_keys && sequence.keys != 0)) chosen_.push_back(i);
    }
    count_ = static_cast<int64_t>(chosen_.size());
  }
  int64_t count() const { return count_; }
  int32_t operator[](int64_t i) const {
    return chosen_.empty() ? static_cast<int32_t>(i) : chosen_[i];
  }

 private:
  int64_t count_ = 0;
  std::vector<int32_t> chosen_;  // empty: all
};

// The number of parts that the queries of a head are divided into. Each reads all keys, for which
// it must have queries enough.
int64_t parts_of_head(const Problem& p, int64_t heads) {
  constexpr int64_t kPieces = 64, kQueries = 256;
  if (heads == 0 || heads >= kPieces) return 1;
  return std::clamp<int64_t>(p.seqlen_q / kQueries, 1, kPieces / heads);
}

}  // namespace

void for_each_head(const Problem& p, const HeadWork& all,
                   const std::function<void(const Problem&, const Sequence&, int64_t, QueryRange,
                                            runtime::Pulse&)>& work) {
  if (query_rows(p) != 0) all.scratch.require();
  try {
    const Entries entries(p, all.writes_keys);
    const int64_t heads = entries.count() * all.heads;
    const int64_t parts = all.divisible ? parts_of_head(p, heads) : 1;
    runtime::parallel_for(
        {heads * parts, all.steps, all.scratch.bytes()}, [&](int64_t item, runtime::Pulse& pulse) {
          const int64_t head = item / parts, part = item % parts;
          const Sequence s(p, entries[head / all.heads]);
          const QueryRange range = {s.queries * part / parts, s.queries * (part + 1) / parts};
          if (parts > 1 && range.begin == range.end) return;
          work(p, s, head % all.heads, range, pulse);
        });
  } catch (const std::bad_alloc&) {
    all.scratch.refuse();
  }
}

}  // namespace AITER_ATTN_NAMESPACE::attention
