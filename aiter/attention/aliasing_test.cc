// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Memory that a call may share, and memory that it may not, on the CPU and on the recording HIP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "aiter/attn.h"
#include "tests/support/attention/problems.h"
#include "tests/support/attention/test_launch_table.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int32_t kDevices[] = {ATTN_DEVICE_CPU, ATTN_DEVICE_ROCM};
constexpr int64_t kSize = 64;  // of a head
// As many query heads as key heads, so that any two tensors can be laid on each other.
const Shape kShape = {2, 3, 3, 7, 7, kSize, kSize};

struct alignas(256) Page {
  unsigned char bytes[256];
};

// A backward call; its first half is a forward call's. Its tensors lie so far from each other that
// one that is moved onto another meets no third.
class Call {
 public:
  explicit Call(int32_t device, const Shape& shape = kShape, std::vector<int32_t> cu_seqlens = {})
      : tensors_(shape, ATTN_DTYPE_FP16, 1, cu_seqlens, cu_seqlens) {
    tensors_.problem.device_type = device;
    fwd = tensors_.fwd();
    bwd = tensors_.bwd();
    const Buffer* const buffers[] = {&tensors_.q,    &tensors_.k,  &tensors_.v,  &tensors_.o,
                                     &tensors_.dout, &tensors_.dq, &tensors_.dk, &tensors_.dv};
    attn_tensor* const places[] = {&bwd.q,    &bwd.k,  &bwd.v,  &bwd.o,
                                   &bwd.dout, &bwd.dq, &bwd.dk, &bwd.dv};
    const auto pages_of = [](const Buffer& buffer) {
      const Extents& e = buffer.extents();
      return static_cast<size_t>(e.batch * e.seq * e.heads * e.head_size) * 2 / sizeof(Page) + 1;
    };
    size_t most = tensors_.lse.size() * sizeof(float) / sizeof(Page) + 1;
    for (const Buffer* buffer : buffers) most = std::max(most, pages_of(*buffer));
    memory_.resize(9 * 2 * most);
    for (int i = 0; i < 8; ++i) {
      places[i]->data = &memory_[2 * most * i];
      const attn_tensor from = buffers[i]->tensor();
      const Extents& e = buffers[i]->extents();
      std::memcpy(places[i]->data, from.data, e.batch * e.seq * e.heads * e.head_size * 2);
    }
    fwd.q = bwd.q, fwd.k = bwd.k, fwd.v = bwd.v, fwd.o = bwd.o;
    fwd.lse = reinterpret_cast<float*>(&memory_[2 * most * 8]);
    bwd.lse = fwd.lse;
    EXPECT_EQ(attn_bwd_workspace_size(&bwd, &bwd.workspace_size), ATTN_OK);
    workspace_.resize(bwd.workspace_size / sizeof(Page));
    bwd.workspace = workspace_.empty() ? nullptr : workspace_.data();
  }
  attn_problem& problem() { return tensors_.problem; }

  attn_fwd_args fwd;
  attn_bwd_args bwd;

 private:
  TestProblem tensors_;
  std::vector<Page> memory_, workspace_;
};

void expect_overlap(attn_status status, const std::string& output, const std::string& other) {
  EXPECT_EQ(status, ATTN_ERROR_INVALID_ARGUMENT) << output << " on " << other;
  EXPECT_THAT(attn_last_error(), StartsWith(output + " overlaps " + other + ": "));
}

template <typename Args>
struct Member {
  const char* name;
  attn_tensor Args::* tensor;
};

// The last row of `at`, and nothing else of it, becomes the first of the other.
void move_to_last_row(attn_tensor* tensor, const attn_tensor& at) {
  auto* const first = static_cast<uint16_t*>(at.data);
  tensor->data = first + at.stride_batch + 6 * at.stride_seq + 2 * at.stride_head;
}

TEST(AliasingTest, AForwardOutputSharesNothing) {
  for (const int32_t device : kDevices) {
    for (const Member<attn_fwd_args> other : {Member<attn_fwd_args>{"q", &attn_fwd_args::q},
                                              {"k", &attn_fwd_args::k},
                                              {"v", &attn_fwd_args::v}}) {
      Call call(device);
      call.fwd.o = call.fwd.*other.tensor;
      expect_overlap(attn_fwd(&call.fwd), "o", other.name);
      move_to_last_row(&call.fwd.o, call.fwd.*other.tensor);
      expect_overlap(attn_fwd(&call.fwd), "o", other.name);
    }
    Call call(device);
    float* const lse = call.fwd.lse;
    for (const Member<attn_fwd_args> other : {Member<attn_fwd_args>{"q", &attn_fwd_args::q},
                                              {"k", &attn_fwd_args::k},
                                              {"v", &attn_fwd_args::v}}) {
      call.fwd.lse = static_cast<float*>((call.fwd.*other.tensor).data);
      expect_overlap(attn_fwd(&call.fwd), "lse", other.name);
    }
    call.fwd.lse = static_cast<float*>(call.fwd.o.data);
    expect_overlap(attn_fwd(&call.fwd), "o", "lse");
    call.fwd.lse = lse;
    EXPECT_EQ(attn_fwd(&call.fwd), ATTN_OK) << attn_last_error();
  }
}

TEST(AliasingTest, ABackwardOutputSharesNothing) {
  const Member<attn_bwd_args> outputs[] = {
      {"dq", &attn_bwd_args::dq}, {"dk", &attn_bwd_args::dk}, {"dv", &attn_bwd_args::dv}};
  const Member<attn_bwd_args> inputs[] = {{"q", &attn_bwd_args::q},
                                          {"k", &attn_bwd_args::k},
                                          {"v", &attn_bwd_args::v},
                                          {"o", &attn_bwd_args::o},
                                          {"dout", &attn_bwd_args::dout}};
  for (const int32_t device : kDevices) {
    for (const Member<attn_bwd_args>& output : outputs) {
      for (const Member<attn_bwd_args>& input : inputs) {
        Call call(device);
        move_to_last_row(&(call.bwd.*output.tensor), call.bwd.*input.tensor);
        expect_overlap(attn_bwd(&call.bwd), output.name, input.name);
      }
      for (const Member<attn_bwd_args>& other : outputs) {
        if (&other <= &output) continue;
        Call call(device);
        move_to_last_row(&(call.bwd.*output.tensor), call.bwd.*other.tensor);
        expect_overlap(attn_bwd(&call.bwd), output.name, other.name);
      }
      Call call(device);
      call.bwd.lse = static_cast<float*>((call.bwd.*output.tensor).data);
      expect_overlap(attn_bwd(&call.bwd), output.name, "lse");
    }
    Call call(device);
    EXPECT_EQ(attn_bwd(&call.bwd), ATTN_OK) << attn_last_error();
  }
}

TEST(AliasingTest, TheWorkspaceSharesNothing) {
  for (attn_tensor attn_bwd_args::* tensor :
       {&attn_bwd_args::q, &attn_bwd_args::k, &attn_bwd_args::v, &attn_bwd_args::o,
        &attn_bwd_args::dout, &attn_bwd_args::dq, &attn_bwd_args::dk, &attn_bwd_args::dv}) {
    Call call(ATTN_DEVICE_ROCM);
    (call.bwd.*tensor).data = static_cast<Page*>(call.bwd.workspace) + 1;
    EXPECT_EQ(attn_bwd(&call.bwd), ATTN_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(attn_last_error(), HasSubstr("workspace"));
    EXPECT_THAT(attn_last_error(), HasSubstr(" overlaps "));
  }
  Call call(ATTN_DEVICE_ROCM);
  call.bwd.lse = static_cast<float*>(call.bwd.workspace);
  expect_overlap(attn_bwd(&call.bwd), "workspace", "lse");
  // More of it than is needed is not touched.
  call.bwd.lse = call.fwd.lse;
  call.bwd.workspace_size += uint64_t{1} << 40;
  EXPECT_EQ(attn_bwd(&call.bwd), ATTN_OK) << attn_last_error();
}

TEST(AliasingTest, LengthsAreNotWritten) {
  for (const int32_t device : kDevices) {
    for (const char* name : {"cu_seqlens_q", "cu_seqlens_k"}) {
      Call call(device, Shape{0, 3, 3, 0, 0, kSize, kSize}, {0, 4, 7});
      std::vector<int32_t> lengths(1000);
      std::memcpy(lengths.data(), call.problem().cu_seqlens_q, 3 * sizeof(int32_t));
      (name[11] == 'q' ? call.problem().cu_seqlens_q : call.problem().cu_seqlens_k) =
          lengths.data();
      float* const lse = call.fwd.lse;
      call.fwd.lse = reinterpret_cast<float*>(lengths.data());
      expect_overlap(attn_fwd(&call.fwd), "lse", name);
      EXPECT_EQ(lengths[1], 4);
      call.fwd.lse = lse;
      EXPECT_EQ(attn_fwd(&call.fwd), ATTN_OK) << attn_last_error();
      if (device == ATTN_DEVICE_ROCM) {
        Page* const workspace = static_cast<Page*>(call.bwd.workspace);
        (name[11] == 'q' ? call.problem().cu_seqlens_q : call.problem().cu_seqlens_k) =
            reinterpret_cast<const int32_t*>(workspace);
        expect_overlap(attn_bwd(&call.bwd), "workspace", name);
      }
    }
  }
}

// Lengths are on the device: all that a total counts may be written.
TEST(AliasingTest, InGroupModeAllTokensCount) {
  for (const int32_t device : kDevices) {
    Call call(device, Shape{0, 3, 3, 0, 0, kSize, kSize}, {0, 4, 7});
    auto* const q = static_cast<uint16_t*>(call.fwd.q.data);
    call.fwd.o.data = q + 6 * 3 * kSize;
    expect_overlap(attn_fwd(&call.fwd), "o", "q");
    call.fwd.o.data = q + 7 * 3 * kSize;
    EXPECT_EQ(attn_fwd(&call.fwd), ATTN_OK) << attn_last_error();
    if (device == ATTN_DEVICE_CPU) continue;
    call.problem().total_q = 8;
    expect_overlap(attn_fwd(&call.fwd), "o", "q");
  }
}

// The same numbers from parts of common buffers as from tensors of their own.
TEST(AliasingTest, PartsOfOneBufferThatDoNotMeetAreServed) {
  constexpr int kBatch = 2, kSeq = 7, kHeads = 3;
  constexpr int64_t kHeadsRow = kHeads * kSize;
  for (const int32_t device : kDevices) {
    Call apart(device);
    const auto copy_into = [&](const attn_tensor& from, const attn_tensor& to) {
      for (int b = 0; b < kBatch; ++b) {
        for (int i = 0; i < kSeq; ++i) {
          for (int h = 0; h < kHeads; ++h) {
            const auto row = [&](const attn_tensor& t) {
              return static_cast<uint16_t*>(t.data) + b * t.stride_batch + i * t.stride_seq +
                     h * t.stride_head;
            };
            std::memcpy(row(to), row(from), kSize * sizeof(uint16_t));
          }
        }
      }
    };
    const auto same = [&](const attn_tensor& a, const attn_tensor& b) {
      std::vector<uint16_t> ours(kBatch * kSeq * kHeadsRow), theirs(ours);
      copy_into(a, {ours.data(), kSeq * kHeadsRow, kHeadsRow, kSize});
      copy_into(b, {theirs.data(), kSeq * kHeadsRow, kHeadsRow, kSize});
      return ours == theirs;
    };
    // [batch, seqlen, 8, heads, head_size]: q, k, v, o, dout and gradients, side by side.
    struct alignas(16) Block {
      uint16_t elements[8];
    };
    std::vector<Block> packed(kBatch * kSeq * 8 * kHeadsRow / 8);
    const auto part = [&](int n) -> attn_tensor {
      return {packed[0].elements + n * kHeadsRow, kSeq * 8 * kHeadsRow, 8 * kHeadsRow, kSize};
    };
    Call together(device);
    attn_bwd_args& args = together.bwd;
    args.q = part(0), args.k = part(1), args.v = part(2), args.o = part(3), args.dout = part(4);
    args.dq = part(5), args.dk = part(6), args.dv = part(7);
    copy_into(apart.bwd.q, args.q), copy_into(apart.bwd.k, args.k), copy_into(apart.bwd.v, args.v);
    copy_into(apart.bwd.dout, args.dout);
    attn_fwd_args& forward = together.fwd;
    forward.q = args.q, forward.k = args.k, forward.v = args.v, forward.o = args.o;
    for (Call* call : {&apart, &together}) {
      EXPECT_EQ(attn_fwd(&call->fwd), ATTN_OK) << attn_last_error();
      EXPECT_EQ(attn_bwd(&call->bwd), ATTN_OK) << attn_last_error();
    }
    EXPECT_TRUE(same(apart.bwd.o, args.o));
    EXPECT_TRUE(same(apart.bwd.dq, args.dq));
    EXPECT_TRUE(same(apart.bwd.dk, args.dk));
    EXPECT_TRUE(same(apart.bwd.dv, args.dv));
    // One element further they meet.
    args.dk.data = static_cast<uint16_t*>(args.dk.data) + 8;
    expect_overlap(attn_bwd(&args), "dk", "dv");
  }
}

TEST(AliasingTest, InputsMayBeOneAndTheSame) {
  for (const int32_t device : kDevices) {
    Call call(device);
    call.bwd.k = call.bwd.v = call.bwd.q;
    call.bwd.dout = call.bwd.o;
    EXPECT_EQ(attn_bwd(&call.bwd), ATTN_OK) << attn_last_error();
  }
}

TEST(AliasingTest, KeysInMemoryFromLastToFirst) {
  Call call(ATTN_DEVICE_CPU);
  attn_tensor& k = call.fwd.k;
  auto* const first = static_cast<uint16_t*>(k.data);
  k.data = first + 6 * k.stride_seq;
  k.stride_seq = -k.stride_seq;
  EXPECT_EQ(attn_fwd(&call.fwd), ATTN_OK) << attn_last_error();
  call.fwd.o.data = first;  // where the last key is
  expect_overlap(attn_fwd(&call.fwd), "o", "k");
}

TEST(AliasingTest, AnOutputWithoutEntriesIsNowhere) {
  Call call(ATTN_DEVICE_CPU, Shape{2, 3, 3, 0, 7, kSize, kSize});
  call.fwd.o = call.fwd.k;
  call.fwd.lse = static_cast<float*>(call.fwd.k.data);
  EXPECT_EQ(attn_fwd(&call.fwd), ATTN_OK) << attn_last_error();
}

TEST(AliasingTest, WhatCannotBeToldIsRefused) {
  // Strides of two great primes; the rows are nowhere near each other, which nothing shows quickly.
  Call call(ATTN_DEVICE_CPU, Shape{1, 1, 1, 1 << 18, 1, 1, 1});
  auto* const middle = reinterpret_cast<uint16_t*>(uintptr_t{1} << 44);
  call.fwd.o = {middle, 0, 1000003, 0};
  call.fwd.q = {middle + int64_t{1000003} * 200000 + 1, 0, -1000033, 0};
  EXPECT_EQ(attn_fwd(&call.fwd), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), StartsWith("whether o overlaps q takes too long to tell"));
}

TEST(AliasingTest, WhatExceedsTheAddressSpaceIsRefused) {
  const auto refused = [](const attn_fwd_args& args, const char* words) {
    EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(attn_last_error(), StartsWith(words));
  };
  Call call(ATTN_DEVICE_CPU);
  attn_fwd_args args = call.fwd;
  args.k.data = reinterpret_cast<void*>(~uintptr_t{1});
  refused(args, "k at 0xfffffffffffffffe exceeds the address space");
  args = call.fwd;
  args.v.stride_batch = -(int64_t{1} << 55);
  refused(args, "v at ");
  args = call.fwd;
  args.lse = reinterpret_cast<float*>(~uintptr_t{3});
  refused(args, "lse at 0xfffffffffffffffc exceeds");
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
