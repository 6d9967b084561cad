// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/regions.h"

#include <algorithm>
#include <numeric>

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// low <= sum of coefficient[i] * x[i] <= high, 0 <= x[i] <= most[i]: whether whole numbers x exist.
class Inequality {
 public:
  Inequality(int64_t low, int64_t high) : low_(low), high_(high) {}

  void add(int64_t coefficient, int64_t most) {
    if (coefficient == 0 || most == 0) return;
    if (coefficient < 0) {  // counted from the other end
      low_ -= coefficient * most;
      high_ -= coefficient * most;
      coefficient = -coefficient;
    }
    for (size_t i = 0; i < count_; ++i) {
      if (terms_[i].coefficient == coefficient) {
        terms_[i].most += most;
        return;
      }
    }
    terms_[count_++] = {coefficient, most};
  }

  Sharing solve() {
    // Greatest first: of those there are the fewest ways.
    std::sort(terms_.begin(), terms_.begin() + count_,
              [](const Term& a, const Term& b) { return a.coefficient > b.coefficient; });
    for (size_t i = count_; i > 0; --i) {
      reach_[i - 1] = reach_[i] + terms_[i - 1].coefficient * terms_[i - 1].most;
    }
    const bool found = search(0, low_, high_);
    return found ? Sharing::kSome : tries_ < kMostTries ? Sharing::kNone : Sharing::kUndecided;
  }

 private:
  struct Term {
    int64_t coefficient;
    int64_t most;
  };
  // A millisecond or so. Tensors that divide one buffer among them need a handful.
  static constexpr int kMostTries = 1 << 16;

  // Whether the terms from `term` on can make a number in [low, high].
  bool search(size_t term, int64_t low, int64_t high) {
    if (high < 0 || low > reach_[term]) return false;
    if (low <= 0) return true;
    if (++tries_ >= kMostTries || !may_hit(term, low, high)) return false;
    const auto [coefficient, most] = terms_[term];
    const int64_t rest = low - reach_[term + 1];
    const int64_t least = rest <= 0 ? 0 : (rest - 1) / coefficient + 1;
    for (int64_t x = least; x <= std::min(most, high / coefficient); ++x) {
      if (search(term + 1, low - x * coefficient, high - x * coefficient)) return true;
      if (tries_ >= kMostTries) return false;
    }
    return false;
  }

  // Necessary: the first terms alone make multiples of their greatest common divisor, one of which
  // the others can reach. low > 0.
  bool may_hit(size_t term, int64_t low, int64_t high) const {
    int64_t divisor = 0;
    for (size_t i = term; i < count_; ++i) {
      divisor = std::gcd(divisor, terms_[i].coefficient);
      if (high / divisor * divisor < low - reach_[i + 1]) return false;
    }
    return true;
  }

  int64_t low_, high_;
  std::array<Term, 6> terms_;
  size_t count_ = 0;
  std::array<int64_t, 7> reach_ = {};  // the greatest sum of the terms from there on
  int tries_ = 0;
};

}  // namespace

Sharing sharing(const Region& a, const Region& b) {
  if (a.end <= b.begin || b.end <= a.begin) return Sharing::kNone;
  // Two rows meet where a's starts less than b's width behind b's, or b's less than a's behind a's.
  const int64_t distance = b.first - a.first;
  Inequality meet(distance - (a.width - 1), distance + (b.width - 1));
  for (size_t i = 0; i < a.step_count; ++i) meet.add(a.steps[i].stride, a.steps[i].extent - 1);
  for (size_t i = 0; i < b.step_count; ++i) meet.add(-b.steps[i].stride, b.steps[i].extent - 1);
  return meet.solve();
}

void refuse_sharing(const Region& output, const Region& other) {
  switch (sharing(output, other)) {
    case Sharing::kNone:
      return;
    case Sharing::kSome:
      fail(Status::kInvalidArgument, Field(output.name), " overlaps ", other.name,
           ": an output must share no byte with anything else of the call; pass memory of its own, "
           "or parts of one buffer that do not meet");
    case Sharing::kUndecided:
      fail(Status::kInvalidArgument, "whether ", output.name, " overlaps ", other.name,
           " takes too long to tell from their strides: pass memory of its own for ", output.name);
  }
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
