// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Random calls of the C ABI, on a HIP that records: the kernels, grids, blocks and kernel arguments
// are those of upstream's dispatchers and host code, or both refuse the call. Where they differ on
// purpose, a difference of differences.h says what is expected instead.
//
// Arguments: the launch table, the calls of each direction, and the differences that occur, as
// DIRECTION:NAME: these must occur, and no others may.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/launch_table/launch_table.h"
#include "tests/dispatch/differences.h"
#include "tests/dispatch/problems.h"
#include "tests/dispatch/table.h"
#include "tests/support/runtime/recorder.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {
namespace {

constexpr uint32_t kSeed = 5;
constexpr int kMostReported = 6;
constexpr std::string_view kSumHeads = "attn_sum_heads_";

int call_count = 0;
std::map<std::string, std::set<std::string>> expected_differences;  // by direction

bool is_sum(const RecordedCall& launch) {
  return std::string_view(launch.symbol).substr(0, kSumHeads.size()) == kSumHeads;
}

// The library's answer to a call. It lives until the next.
struct Ours {
  attn_status status;
  std::string message;
  std::vector<RecordedCall> launches;
  std::vector<RecordedCall> sums;
  RecordedCall last_fill;
};

Ours run(Forward* call, AddressSpace*) {
  call->args.problem = &call->problem;
  const testing::Recorder recorder;
  Ours ours = {attn_fwd(&call->args), attn_last_error()};
  ours.launches = recorder.of(kRecordedLaunch);
  return ours;
}

Ours run(Backward* call, AddressSpace* addresses) {
  call->args.problem = &call->problem;
  const testing::Recorder recorder;
  attn_bwd_args& args = call->args;
  if (attn_status failed = attn_bwd_workspace_size(&args, &args.workspace_size)) {
    return {failed, attn_last_error()};
  }
  if (args.workspace_size != 0) {
    args.workspace = addresses->take(static_cast<int64_t>(args.workspace_size));
  }
  Ours ours = {attn_bwd(&args), attn_last_error()};
  for (const RecordedCall& launch : recorder.of(kRecordedLaunch)) {
    (is_sum(launch) ? ours.sums : ours.launches).push_back(launch);
  }
  const std::vector<RecordedCall> fills = recorder.of(kRecordedFill);
  if (!fills.empty()) ours.last_fill = fills.back();
  return ours;
}

Ours run(Cached* call, AddressSpace* addresses) {
  attn_kvcache_fwd_args& args = call->args;
  args.problem = &call->problem;
  args.cache = &call->cache;
  const testing::Recorder recorder;
  if (attn_status failed = attn_kvcache_fwd_workspace_size(&args, &args.workspace_size)) {
    return {failed, attn_last_error()};
  }
  if (args.workspace_size != 0) {
    args.workspace = addresses->take(static_cast<int64_t>(args.workspace_size));
  }
  Ours ours = {attn_kvcache_fwd(&args), attn_last_error()};
  ours.launches = recorder.of(kRecordedLaunch);
  return ours;
}

Ours run(Appended* call, AddressSpace*) {
  call->args.problem = &call->problem;
  call->args.cache = &call->cache;
  const testing::Recorder recorder;
  Ours ours = {attn_append_kv(&call->args), attn_last_error()};
  ours.launches = recorder.of(kRecordedLaunch);
  return ours;
}

void find_scratch(Forward*, const Ours&) {}
void find_scratch(Appended*, const Ours&) {}
void find_scratch(Cached*, const Ours&) {}

// Where the library has put the scratch memory, which in upstream is the caller's choice: delta,
// dq_acc, which is filled, and where heads share keys dk and dv behind it. Of few queries dq is
// written at once: dq_acc lies there, behind delta, and is not filled.
void find_scratch(Backward* call, const Ours& ours) {
  const attn_problem& p = call->problem;
  call->dk = call->args.dk;
  call->dv = call->args.dv;
  if (ours.launches.empty()) return;
  char* at = static_cast<char*>(ours.last_fill.data);
  size_t dq_acc_size = ours.last_fill.width * ours.last_fill.rows;
  const auto skip = [&](size_t bytes) { at += (bytes + 255) / 256 * 256; };
  if (ours.launches.size() == 2) {
    const auto rows = static_cast<size_t>(int64_t{p.batch} * p.seqlen_q * p.heads_q);
    at = static_cast<char*>(call->args.workspace);
    skip(rows * sizeof(float));
    dq_acc_size = rows * p.head_size_qk * sizeof(float);
  }
  call->delta = static_cast<float*>(call->args.workspace);
  call->dq_acc = reinterpret_cast<float*>(at);
  if (p.heads_q == p.heads_k) return;
  skip(dq_acc_size);
  const bool group = p.mode == ATTN_MODE_GROUP;
  const int64_t seqlen = group ? p.total_k : p.seqlen_k;
  const int64_t entries = group ? 1 : p.batch;
  const auto expanded = [&](int32_t head_size) {
    const int64_t row = int64_t{p.heads_q} * head_size;
    const attn_tensor t = {at, seqlen * row, row, head_size};
    skip(static_cast<size_t>(2 * entries * seqlen * row));
    return t;
  };
  call->dk = expanded(p.head_size_qk);
  call->dv = expanded(p.head_size_v);
}

// "" where they are the same.
std::string difference(const RecordedCall& ours, const Launch& theirs) {
  std::ostringstream out;
  if (theirs.name != ours.symbol) {
    out << "we pick " << ours.symbol << ",\n  upstream " << theirs.name;
  } else if (!std::equal(ours.grid, ours.grid + 3, theirs.grid)) {
    out << theirs.name << ": our grid is " << ours.grid[0] << " x " << ours.grid[1] << " x "
        << ours.grid[2] << ", upstream's " << theirs.grid[0] << " x " << theirs.grid[1] << " x "
        << theirs.grid[2];
  } else if (!std::equal(ours.block, ours.block + 3, theirs.block)) {
    out << theirs.name << ": our block is " << ours.block[0] << ", upstream's " << theirs.block[0];
  } else if (ours.shared_bytes != 0) {
    out << theirs.name << ": we ask for " << ours.shared_bytes
        << " bytes of LDS, upstream for none";
  } else if (ours.kernarg_size != theirs.kernarg.size()) {
    out << theirs.name << ": our arguments have " << ours.kernarg_size << " bytes, upstream's "
        << theirs.kernarg.size();
  } else {
    for (size_t i = 0; i < theirs.kernarg.size(); ++i) {
      if (!theirs.is_field[i] || ours.kernarg[i] == theirs.kernarg[i]) continue;
      out << theirs.name << ": byte " << i << " of our arguments is " << int{ours.kernarg[i]}
          << ", of upstream's " << int{theirs.kernarg[i]};
      break;
    }
  }
  return out.str();
}

std::string difference(const Ours& ours, const Answer& theirs) {
  const bool is_served = ours.status == ATTN_OK;
  if (is_served != theirs.is_served) {
    return theirs.is_served ? "upstream serves it, we refuse: " + ours.message
                            : "upstream refuses it, we serve it";
  }
  if (!is_served) return ours.status == ATTN_ERROR_UNSUPPORTED ? "" : ours.message;
  if (ours.launches.size() != theirs.launches.size()) {
    return "we launch " + std::to_string(ours.launches.size()) + " kernels, upstream " +
           std::to_string(theirs.launches.size());
  }
  for (size_t i = 0; i < ours.launches.size(); ++i) {
    if (std::string text = difference(ours.launches[i], theirs.launches[i]); !text.empty()) {
      return text;
    }
  }
  if (static_cast<int>(ours.sums.size()) != theirs.sums) {
    return "we launch " + std::to_string(ours.sums.size()) + " sums over heads";
  }
  return "";
}

bool same(const Answer& one, const Answer& other) {
  return one.is_served == other.is_served && one.sums == other.sums &&
         std::equal(one.launches.begin(), one.launches.end(), other.launches.begin(),
                    other.launches.end(), [](const Launch& a, const Launch& b) {
                      return a.name == b.name && a.kernarg == b.kernarg &&
                             std::equal(a.grid, a.grid + 3, b.grid);
                    });
}

// Gaps between fields are less than the greatest alignment; a longer one is a field that nothing
// has set.
bool gaps_are_short(const Launch& launch) {
  int gap = 0;
  for (const unsigned char is_field : launch.is_field) {
    gap = is_field ? 0 : gap + 1;
    if (gap >= 8) return false;
  }
  return true;
}

// Upstream's answer to a call, and the differences from the library's.
struct Outcome {
  Answer theirs;
  std::string text;  // "" where they do not, but for these
  std::set<std::string> on_purpose;
};

template <typename Call>
Outcome compare(const Call& call, const Ours& ours) {
  Question<Call> question = question_of(call);
  Outcome outcome = {ask(question)};
  outcome.text = difference(ours, outcome.theirs);
  for (const Difference<Call>& each : differences<Call>()) {
    if (outcome.text.empty()) break;
    const Answer before = outcome.theirs;
    each.apply(&question, &outcome.theirs);
    if (same(before, outcome.theirs)) continue;
    outcome.on_purpose.insert(each.name);
    outcome.text = difference(ours, outcome.theirs);
  }
  return outcome;
}

// In upstream the caller chooses between the directions over a cache, and the splits: the library's
// choice is asked for, or where it refuses each that the call allows.
Outcome compare(Cached call, const Ours& ours) {
  const attn_problem& p = call.problem;
  std::vector<int32_t> ways;
  if (call.cache.page_indptr) {
    ways.push_back(0);  // listed keys have one direction
  } else if (ours.launches.empty()) {
    if (call.args.splits <= 1 && call.cache.page_size > 0) ways.push_back(0);
    if (call.args.min_seqlen_q == 0) ways.push_back(std::max(1, call.args.splits));
  } else if (ours.launches.size() == 1) {
    ways.push_back(0);  // the kernels for pages are alone
  } else if (call.args.splits > 0) {
    ways.push_back(call.args.splits);
  } else {
    // As many as fill the GPU: the kernel arguments say how many.
    for (int32_t splits = 1; splits <= kernels::kMostSplits; ++splits) ways.push_back(splits);
  }
  Outcome outcome;
  for (const int32_t splits : ways) {
    call.splits = splits;
    const int64_t rows = p.mode == ATTN_MODE_GROUP ? p.total_q : int64_t{p.batch} * p.seqlen_q;
    const int64_t lse_bytes = 4 * int64_t{splits} * rows * p.heads_q;
    const bool is_split = splits != 0 && call.args.workspace != nullptr;
    call.lse_acc = is_split ? static_cast<float*>(call.args.workspace) : nullptr;
    call.o_acc = is_split ? call.lse_acc + (lse_bytes + 255) / 256 * 64 : nullptr;
    outcome = compare<Cached>(call, ours);
    // Of several choices that are served one is right, of those that are refused all are.
    if (outcome.text.empty() == !ours.launches.empty()) break;
  }
  return outcome;
}

template <typename Call>
void compare_all(const std::string& direction, Call (*draw)(std::mt19937*, AddressSpace*)) {
  std::mt19937 random(kSeed);
  AddressSpace addresses;
  int served = 0, refused = 0, different = 0;
  std::set<std::string> instances;
  std::map<std::string, int> seen;
  for (int i = 0; i < call_count; ++i) {
    Call call = draw(&random, &addresses);
    const Ours ours = run(&call, &addresses);
    find_scratch(&call, ours);
    const Outcome outcome = compare(call, ours);
    for (const std::string& name : outcome.on_purpose) ++seen[name];
    for (const Launch& launch : outcome.theirs.launches) {
      instances.insert(launch.name);
      EXPECT_TRUE(gaps_are_short(launch)) << launch.name;
    }
    (outcome.theirs.is_served ? served : refused) += 1;
    if (!outcome.text.empty() && different++ < kMostReported) {
      std::string tried;
      for (const std::string& name : outcome.on_purpose) tried += ", " + name;
      ADD_FAILURE() << describe(call) << tried << ":\n  " << outcome.text;
    }
  }
  std::printf("%s: %d calls, %d served by %zu instances, %d refused by both, %d different\n",
              direction.c_str(), call_count, served, instances.size(), refused, different);
  std::set<std::string> names;
  for (const auto& [name, count] : seen) {
    std::printf("  %s: %d\n", name.c_str(), count);
    names.insert(name);
  }
  EXPECT_EQ(different, 0);
  EXPECT_EQ(names, expected_differences[direction]);
}

TEST(DispatchParityTest, Forward) { compare_all<Forward>("fwd", random_forward); }

TEST(DispatchParityTest, Backward) { compare_all<Backward>("bwd", random_backward); }

TEST(DispatchParityTest, SplitKeys) { compare_all<Cached>("fwd_splitkv", random_split); }

TEST(DispatchParityTest, PagedKeys) { compare_all<Cached>("fwd_pagedkv", random_paged); }

TEST(DispatchParityTest, ListedKeys) { compare_all<Cached>("fwd_batch_prefill", random_listed); }

TEST(DispatchParityTest, Append) { compare_all<Appended>("fwd_appendkv", random_appended); }

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity

int main(int argc, char** argv) {
  namespace parity = AITER_ATTN_NAMESPACE::attention::dispatch_parity;
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 3) {
    std::fprintf(stderr, "give a launch table, a number of calls, and DIRECTION:DIFFERENCE ...\n");
    return 2;
  }
  parity::read_table(argv[1]);
  parity::call_count = std::atoi(argv[2]);
  for (int i = 3; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t colon = text.find(':');
    parity::expected_differences[text.substr(0, colon)].insert(text.substr(colon + 1));
  }
  return RUN_ALL_TESTS();
}
