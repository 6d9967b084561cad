// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The time of dispatch at the size of all that upstream has, against upstream's generated
// if-chains over the same instances. Both choose for the same problems, in turns; where other work
// is on the machine, the least of many rounds tells more than their median. Arguments: launch
// tables, with upstream's rows alone and with AITER's assembly as well, which is then looked for
// first.
#include "aiter/attention/dispatch.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

#include "aiter/attention/passes/passes.h"
#include "kernels/launch_table/launch_table.h"
#include "tests/bench/dispatch/upstream.h"

namespace AITER_ATTN_NAMESPACE::bench {
namespace {

constexpr int kRounds = 51;
// On, beside and between tiles.
constexpr int32_t kHeadSizes[][2] = {{32, 32},   {64, 64},   {128, 128}, {256, 256}, {40, 40},
                                     {72, 72},   {96, 96},   {96, 128},  {192, 128}, {160, 160},
                                     {192, 192}, {100, 100}, {36, 36},   {64, 128},  {128, 64},
                                     {8, 8},     {1, 1},     {64, 8}};
constexpr int32_t kLengths[] = {0, 1, 16, 32, 48, 64, 96, 100, 128, 192, 256, 1000, 1024};

std::vector<Problem> all_problems() {
  std::vector<Problem> problems;
  for (unsigned traits = 0; traits < 16; ++traits) {
    const bool bf16 = traits & 1, group = traits & 2, mask = traits & 4, lse = traits & 8;
    for (const auto& [qk, v] : kHeadSizes) {
      for (const int32_t seqlen_q : kLengths) {
        for (const int32_t seqlen_k : kLengths) {
          problems.push_back({bf16, group, mask, lse, qk, v, seqlen_q, seqlen_k});
        }
      }
    }
  }
  return problems;
}

attention::Request request_of(const Problem& p, const attention::Pass& pass) {
  attention::Request request = {};
  request.pass = &pass;
  request.traits.dtype = p.bf16 ? kernels::Dtype::kBf16 : kernels::Dtype::kFp16;
  request.traits.group_mode = p.group_mode;
  request.traits.mask = p.mask;
  request.traits.lse = p.lse;
  request.traits.schedule = kernels::Schedule::kMi300;
  request.head_size_qk = p.head_size_qk;
  request.head_size_v = p.head_size_v;
  request.seqlen_q = p.seqlen_q;
  request.seqlen_k = p.seqlen_k;
  request.arch = "gfx942";
  return request;
}

// Nanoseconds per problem.
template <typename Choose>
double time_of(const std::vector<Problem>& problems, Choose&& choose) {
  const auto start = std::chrono::steady_clock::now();
  for (const Problem& p : problems) choose(p);
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
  return taken.count() / static_cast<double>(problems.size());
}

struct Times {
  double least, median;
};

Times times_of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return {times.front(), times[kRounds / 2]};
}

// Prints both times, and how many times ours upstream takes, by the medians. Counts the problems
// that either refuses.
double compare(const char* name, const kernels::LaunchTable& table, const attention::Pass& pass,
               const void* (*upstream)(const Problem&), const std::vector<Problem>& problems,
               int* refused) {
  std::vector<double> our_times, their_times;
  for (int round = 0; round < kRounds; ++round) {
    our_times.push_back(time_of(problems, [&](const Problem& p) {
      *refused += !attention::dispatch(table, request_of(p, pass)).is_complete();
    }));
    their_times.push_back(time_of(problems, [&](const Problem& p) { *refused += !upstream(p); }));
  }
  const Times us = times_of(our_times), them = times_of(their_times);
  std::printf("%s: %.0f ns per dispatch (least %.0f), upstream %.0f ns (least %.0f)\n", name,
              us.median, us.least, them.median, them.least);
  return them.median / us.median;
}

int run(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<uint64_t> blob((bytes.size() + 7) / 8);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(blob.data()));
  if (!kernels::LaunchTable::valid(blob.data(), bytes.size())) {
    std::fprintf(stderr, "%s is not a launch table\n", path);
    return 2;
  }
  const kernels::LaunchTable table = {blob.data(), nullptr, 0};
  // Those that upstream serves: it leaves early where nothing does.
  std::vector<Problem> forward, backward;
  for (const Problem& p : all_problems()) {
    if (upstream_forward(p)) forward.push_back(p);
    if (!p.lse && upstream_backward(p)) backward.push_back(p);
  }
  std::printf("%u rows; %zu forward and %zu backward problems\n", table.row_count(), forward.size(),
              backward.size());
  int refused = 0;
  const double forward_ratio =
      compare("forward", table, attention::forward_pass(), upstream_forward, forward, &refused);
  const double backward_ratio =
      compare("backward", table, attention::backward_pass(), upstream_backward, backward, &refused);
  std::printf("ratio %.1f\n", std::min(forward_ratio, backward_ratio));
  if (refused) std::printf("%d refused\n", refused);
  return refused != 0;
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::bench

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  int failed = 0;
  for (int i = 1; i < argc; ++i) failed |= AITER_ATTN_NAMESPACE::bench::run(argv[i]);
  return failed;
}
