// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// launches KIT: the time of a forward call whose kernel is in the library and loaded, up to
// the launch on a recording device, with AITER_ATTN_ON_DEMAND=compile and a compile kit, beside
// off. A process has one setting, so each round starts one of each, in turns; a process takes the
// median of its batches.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "aiter/attn.h"
#include "tests/support/attention/problems.h"
#include "tests/support/runtime/recorder.h"

namespace AITER_ATTN_NAMESPACE::bench {
namespace {

constexpr int kRounds = 21, kBatches = 201, kCalls = 500;
constexpr const char* kSettings[] = {"off", "compile"};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Nanoseconds of a call in this process.
double nanoseconds() {
  testing::Shape shape;
  shape.batch = 2;
  shape.heads_q = shape.heads_k = 2;
  shape.seqlen_q = shape.seqlen_k = 128;
  shape.head_size_qk = shape.head_size_v = 64;
  testing::TestProblem problem(shape, ATTN_DTYPE_FP16);
  problem.problem.device_type = ATTN_DEVICE_ROCM;
  problem.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
  problem.problem.window_left = -1;
  problem.problem.window_right = 0;
  const attn_fwd_args args = problem.fwd();
  std::vector<double> batches;
  for (int batch = 0; batch < kBatches; ++batch) {
    const testing::Recorder recorder;  // it forgets the batch before
    const auto start = std::chrono::steady_clock::now();
    for (int call = 0; call < kCalls; ++call) {
      if (attn_fwd(&args) != ATTN_OK) throw std::runtime_error(attn_last_error());
    }
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    batches.push_back(taken.count() / kCalls);
  }
  return median(batches);
}

// The same in another process, with the setting.
double nanoseconds_with(const std::string& program, const char* setting) {
  setenv("AITER_ATTN_ON_DEMAND", setting, 1);
  FILE* const pipe = popen((program + " call").c_str(), "r");
  double found = 0;
  if (!pipe || std::fscanf(pipe, "%lf", &found) != 1 || pclose(pipe) != 0) {
    throw std::runtime_error(std::string("no answer of ") + program + " call");
  }
  return found;
}

void print(const char* name, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::printf("%-8s  %8.0f ns  (%.0f to %.0f)\n", name, median(values), values.front(),
              values.back());
}

int run(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "call") {
    std::printf("%.1f\n", nanoseconds());
    return 0;
  }
  const char* const kit = argc == 2 ? realpath(argv[1], nullptr) : nullptr;
  if (!kit) throw std::runtime_error("usage: launches KIT, the folder of a compile kit");
  setenv("AITER_ATTN_COMPILE_KIT", kit, 1);
  std::vector<double> found[2], more;
  for (int round = 0; round < kRounds; ++round) {
    for (int turn = 0; turn < 2; ++turn) {
      const int which = (round + turn) % 2;
      found[which].push_back(nanoseconds_with(argv[0], kSettings[which]));
    }
    more.push_back(found[1].back() - found[0].back());
  }
  std::printf("a call with AITER_ATTN_ON_DEMAND, median and range of %d processes each\n", kRounds);
  for (int which = 0; which < 2; ++which) print(kSettings[which], found[which]);
  print("more", more);
  return 0;
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::bench

int main(int argc, char** argv) {
  try {
    return AITER_ATTN_NAMESPACE::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
