// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/reference/heads.h"

#include <new>
#include <vector>

#include "aiter/attention/reference/scratch.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

// The batch entries that have rows to be written. There may be billions of others.
class Entries {
 public:
  explicit Entries(const Problem& p) {
    const bool forward = !is_backward(p);
    if (query_rows(p) == 0 && (forward || key_rows(p) == 0)) return;
    count_ = p.batch;
    if (!is_group(p)) return;
    for (int32_t i = 0; i < p.batch; ++i) {
      const Sequence sequence(p, i);
      if (sequence.queries != 0 || (!forward && sequence.keys != 0)) chosen_.push_back(i);
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

}  // namespace

void for_each_head(
    const Problem& p, int32_t heads, double steps,
    const std::function<void(const Problem&, const Sequence&, int64_t, runtime::Pulse&)>& work) {
  if (has_scores(p)) require_scratch(p);
  try {
    const Entries entries(p);
    runtime::parallel_for({entries.count() * heads, steps, scratch_bytes(p)},
                          [&](int64_t item, runtime::Pulse& pulse) {
                            const Sequence sequence(p, entries[item / heads]);
                            work(p, sequence, item % heads, pulse);
                          });
  } catch (const std::bad_alloc&) {
    out_of_scratch(p);
  }
}

}  // namespace AITER_ATTN_NAMESPACE::attention
