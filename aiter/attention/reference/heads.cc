// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/reference/heads.h"

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

}  // namespace

void for_each_head(
    const Problem& p, const HeadWork& all,
    const std::function<void(const Problem&, const Sequence&, int64_t, runtime::Pulse&)>& work) {
  if (query_rows(p) != 0) all.scratch.require();
  try {
    const Entries entries(p, all.writes_keys);
    runtime::parallel_for({entries.count() * all.heads, all.steps, all.scratch.bytes()},
                          [&](int64_t item, runtime::Pulse& pulse) {
                            const Sequence sequence(p, entries[item / all.heads]);
                            work(p, sequence, item % all.heads, pulse);
                          });
  } catch (const std::bad_alloc&) {
    all.scratch.refuse();
  }
}

}  // namespace AITER_ATTN_NAMESPACE::attention
