// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/dispatch_reference/problems.h"

#include <algorithm>
#include <deque>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace AITER_ATTN_NAMESPACE::attention::dispatch_reference {
namespace {

constexpr int32_t kHeadSizes[][2] = {{32, 32},   {64, 64},   {128, 128}, {256, 256}, {40, 40},
                                     {72, 72},   {96, 96},   {96, 128},  {192, 128}, {160, 160},
                                     {192, 192}, {100, 100}, {36, 36},   {64, 128},  {128, 64},
                                     {8, 8},     {1, 1},     {64, 8},    {300, 64},  {256, 257}};
constexpr int32_t kLengths[] = {0, 1, 16, 32, 48, 64, 96, 100, 128, 192, 256, 1000, 1024};

}  // namespace

std::vector<UpstreamProblem> all_problems() {
  std::vector<UpstreamProblem> problems;
  for (const bool bf16 : {false, true}) {
    for (const bool group : {false, true}) {
      for (const bool mask : {false, true}) {
        for (const bool lse : {false, true}) {
          for (const auto& [qk, v] : kHeadSizes) {
            for (const int32_t seqlen_q : kLengths) {
              for (const int32_t seqlen_k : kLengths) {
                problems.push_back({bf16, group, mask, lse, qk, v, seqlen_q, seqlen_k});
              }
            }
          }
        }
      }
    }
  }
  return problems;
}

Request request_of(const UpstreamProblem& p, Direction direction) {
  Request request = {};
  request.direction = direction;
  request.traits.dtype = p.bf16 ? kernels::Dtype::kBf16 : kernels::Dtype::kFp16;
  request.traits.group_mode = p.group_mode;
  request.traits.mask = p.mask;
  request.traits.lse = p.lse;
  request.head_size_qk = p.head_size_qk;
  request.head_size_v = p.head_size_v;
  request.seqlen_q = p.seqlen_q;
  request.seqlen_k = p.seqlen_k;
  request.arch = "gfx942";
  return request;
}

kernels::LaunchTable read_table(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  static std::deque<std::vector<uint64_t>> blobs;  // what a table refers to
  auto& blob = blobs.emplace_back((bytes.size() + 7) / 8);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(blob.data()));
  if (!kernels::LaunchTable::valid(blob.data(), bytes.size())) {
    throw std::runtime_error(path + " is not a launch table");
  }
  return {blob.data(), nullptr, 0};
}

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_reference
