// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Where this library differs from upstream's dispatchers on purpose: a list. Each difference gives
// the call that upstream gets in place of the library's, so that its answer is the expected one.
#pragma once

#include <string>
#include <vector>

#include "tests/dispatch/upstream.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {

// The answer to a call: its launches, or none.
struct Answer {
  bool is_served = false;
  std::vector<Launch> launches;
  int sums = 0;  // launches of sum_heads behind them, which upstream does not have
};

template <typename Call>
struct Question {
  Call call;
  Told told;
};

template <typename Call>
struct Difference {
  const char* name;
  const char* reason;
  // Changes the question, and the answer to the expected one; leaves both where it says nothing.
  void (*apply)(Question<Call>* question, Answer* answer);
};

// As the call says.
Question<Forward> question_of(const Forward& call);
Question<Backward> question_of(const Backward& call);
Question<Cached> question_of(const Cached& call);
Question<Appended> question_of(const Appended& call);

template <typename Call>
Answer ask(const Question<Call>& question) {
  Answer answer;
  answer.launches = upstream(question.call, question.told);
  answer.is_served = !answer.launches.empty();
  return answer;
}

// In the order in which they are tried.
template <typename Call>
const std::vector<Difference<Call>>& differences();

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity
