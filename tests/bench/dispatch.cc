// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The time of dispatch at the size of all that upstream has, against upstream's generated
// if-chains over the same instances. Both choose for the same problems, in turns. Argument: the
// launch table.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "aiter/attention/dispatch_reference/problems.h"

namespace {

using namespace AITER_ATTN_NAMESPACE::attention;
using namespace AITER_ATTN_NAMESPACE::attention::dispatch_reference;

constexpr int kRounds = 7;

// Nanoseconds per problem.
template <typename Choose>
double time_of(const std::vector<UpstreamProblem>& problems, Choose&& choose) {
  const auto start = std::chrono::steady_clock::now();
  for (const UpstreamProblem& p : problems) choose(p);
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
  return taken.count() / static_cast<double>(problems.size());
}

// Prints both medians, and how many times ours upstream takes.
template <typename Ours, typename Theirs>
double compare(const char* name, const std::vector<UpstreamProblem>& problems, Ours&& ours,
               Theirs&& theirs) {
  std::vector<double> our_times, their_times;
  for (int round = 0; round < kRounds; ++round) {
    our_times.push_back(time_of(problems, ours));
    their_times.push_back(time_of(problems, theirs));
  }
  const auto median = [](std::vector<double> times) {
    std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
    return times[kRounds / 2];
  };
  const double us = median(our_times), them = median(their_times);
  std::printf("%s: %.0f ns per dispatch, upstream %.0f ns\n", name, us, them);
  return them / us;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto table = read_table(argv[1]);
  // Those that upstream serves: it leaves early where nothing does.
  std::vector<UpstreamProblem> forward, backward;
  for (const UpstreamProblem& p : all_problems()) {
    if (upstream_forward(p).picked) forward.push_back(p);
    if (!p.lse && upstream_backward(p).dq_dk_dv.picked) backward.push_back(p);
  }
  int refused = 0;
  std::printf("%u rows; %zu forward and %zu backward problems\n", table.row_count(), forward.size(),
              backward.size());
  const double forward_ratio = compare(
      "forward", forward,
      [&](const UpstreamProblem& p) {
        refused += !dispatch(table, request_of(p, Direction::kForward)).is_complete();
      },
      [&](const UpstreamProblem& p) { refused += !upstream_forward(p).picked; });
  const double backward_ratio = compare(
      "backward", backward,
      [&](const UpstreamProblem& p) {
        refused += !dispatch(table, request_of(p, Direction::kBackward)).is_complete();
      },
      [&](const UpstreamProblem& p) { refused += !upstream_backward(p).dq_dk_dv.picked; });
  std::printf("ratio %.1f\n", std::min(forward_ratio, backward_ratio));
  if (refused) std::printf("%d refused\n", refused);
  return refused != 0;
}
