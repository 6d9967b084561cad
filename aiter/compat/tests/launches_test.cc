// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Calls by AITER's interface launch what the same calls of the C ABI launch: random structs,
// against the recording HIP.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "aiter/attn.h"
#include "aiter/compat/tests/consumer.h"
#include "aiter/compat/tests/recorded.h"
#include "tests/support/runtime/recorder.h"

namespace AITER_ATTN_NAMESPACE::compat {
namespace {

using consumer::Call;
using consumer::Tensor;
using testing::Recorder;

constexpr int kCalls = 600;  // of each pass

// Draws calls, and the memory that they need.
class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}

  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[number(0, static_cast<int>(values.size()) - 1)];
  }
  int number(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }
  bool once_in(int n) { return number(1, n) == 1; }

  // Rows of all heads (BSHD), or heads of all rows (BHSD), with room between them.
  Tensor tensor(int batch, int rows, int heads, int size, bool group) {
    const int room = 8 * number(0, 1);
    Tensor t;
    if (once_in(2)) {
      t.head = size + room;
      t.row = heads * t.head;
      t.batch = rows * t.row;
    } else {
      t.row = size + room;
      t.head = rows * t.row;
      t.batch = heads * t.head;
    }
    t.data = memory_.take(2 * size_t(group ? 1 : batch) * t.batch + 2);
    return t;
  }

  const int32_t* starts(const std::vector<int32_t>& lengths) {
    auto* all = static_cast<int32_t*>(memory_.take(4 * (lengths.size() + 1)));
    for (size_t i = 0; i < lengths.size(); ++i) all[i + 1] = all[i] + lengths[i];
    return all;
  }

  // Heads: as many key heads as query heads, or one where `shared` says so.
  Call call(bool backward) {
    Call c;
    c.dtype = one_of({"fp16", "bf16"});
    c.group = once_in(2);
    c.batch = number(1, 3);
    c.heads_q = number(1, 4);
    c.heads_k = once_in(3) ? 1 : c.heads_q;
    if (!backward && c.heads_q == 4 && once_in(2)) c.heads_k = 2;
    c.size_qk = c.size_v = one_of({64, 128, 128, 96});
    if (c.group) {
      std::vector<int32_t> lengths_q, lengths_k;
      for (int i = 0; i < c.batch; ++i) {
        lengths_q.push_back(number(1, 140));
        lengths_k.push_back(number(1, 140));
        c.longest_q = std::max(c.longest_q, lengths_q.back());
        c.longest_k = std::max(c.longest_k, lengths_k.back());
      }
      c.starts_q = starts(lengths_q);
      c.starts_k = starts(lengths_k);
      c.rows_q = c.starts_q[c.batch];
      c.rows_k = c.starts_k[c.batch];
      if (once_in(4)) c.used_q = c.starts_q + 1;
      if (once_in(4)) c.used_k = c.starts_k + 1;
      if (!c.used_q && once_in(3)) c.sums_q = one_of({c.starts_q, starts(lengths_k)});
      if (!c.used_k && once_in(3)) c.sums_k = one_of({c.starts_k, starts(lengths_q)});
    } else {
      c.rows_q = number(1, 140);
      c.rows_k = once_in(2) ? 128 : number(1, 140);
      const std::vector<int32_t> used(c.batch, 1);
      if (!backward && once_in(4)) c.sums_q = starts(used);
      if (!backward && once_in(4)) c.sums_k = starts(used);
    }
    c.q = tensor(c.batch, c.rows_q, c.heads_q, c.size_qk, c.group);
    c.k = tensor(c.batch, c.rows_k, c.heads_k, c.size_qk, c.group);
    c.v = tensor(c.batch, c.rows_k, c.heads_k, c.size_v, c.group);
    c.o = tensor(c.batch, c.rows_q, c.heads_q, c.size_v, c.group);
    c.lse =
        static_cast<float*>(memory_.take(4 * size_t(c.group ? 1 : c.batch) * c.heads_q * c.rows_q));
    c.wants_lse = backward || !once_in(4);
    c.mask = number(0, 3);
    if (c.mask != 0) {
      c.left = one_of({-1, -1, 0, 17, -5});
      c.right = one_of({0, 0, -1, 9});
    }
    c.scale = 0.125f * static_cast<float>(number(1, 8));
    if (!backward && once_in(6)) c.cap = 30;
    if (once_in(4)) draw_bias(backward, &c);
    if (once_in(4)) draw_dropout(&c);
    if (!backward && once_in(8)) c.sink = floats(c.heads_q);
    if (!backward && c.group && once_in(4)) c.shortest_q = number(1, 20);
    c.use_asm = once_in(2);
    c.rounding = number(0, 2);
    c.stream = reinterpret_cast<void*>(0x5000);
    if (!backward) return c;
    c.dout = tensor(c.batch, c.rows_q, c.heads_q, c.size_v, c.group);
    c.dq = tensor(c.batch, c.rows_q, c.heads_q, c.size_qk, c.group);
    c.dk = tensor(c.batch, c.rows_k, c.heads_q, c.size_qk, c.group);
    c.dv = tensor(c.batch, c.rows_k, c.heads_q, c.size_v, c.group);
    c.deterministic = once_in(5);
    return c;
  }

 private:
  float* floats(int count) { return static_cast<float*>(memory_.take(4 * size_t(count))); }

  void draw_bias(bool backward, Call* c) {
    if (once_in(2)) return draw_slopes(c);
    const int keys = (c->rows_k + 7) / 8 * 8;
    c->bias_type = 1;
    c->bias = {memory_.take(2 * size_t(c->batch) * c->heads_q * c->rows_q * keys), 0, keys, 0};
    // BHSS, B1SS, 1HSS, 11SS.
    const bool by_head = once_in(2), by_batch = once_in(2);
    if (by_head) c->bias.head = c->rows_q * keys;
    if (by_batch) c->bias.batch = (by_head ? c->heads_q : 1) * c->rows_q * keys;
    if (!backward || once_in(3)) return;
    c->wants_dbias = true;
    c->dbias = {memory_.take(2 * size_t(c->batch) * c->heads_q * c->rows_q * keys),
                c->heads_q * c->rows_q * keys, keys, c->rows_q * keys};
  }

  void draw_slopes(Call* c) {
    c->bias_type = 2;
    c->bias.data = floats(c->batch * c->heads_q);
    c->bias.batch = once_in(2) ? c->heads_q : 0;
  }

  void draw_dropout(Call* c) {
    c->p_drop = 0.25f;
    if (once_in(2)) {
      c->seed = 1234567890123u;
      c->offset = 42;
    } else {
      c->rng_state = static_cast<const uint64_t*>(memory_.take(16));
    }
  }

  std::mt19937 random_;
  Memory memory_;
};

// The same calls of the C ABI.

attn_tensor attn(const Tensor& t) { return {t.data, t.batch, t.row, t.head}; }

attn_problem problem_of(const Call& c) {
  attn_problem p = {};
  p.struct_size = sizeof(p);
  p.mode = c.group ? ATTN_MODE_GROUP : ATTN_MODE_BATCH;
  p.device_type = ATTN_DEVICE_ROCM;
  p.stream = c.stream;
  p.dtype = c.dtype[0] == 'f' ? ATTN_DTYPE_FP16 : ATTN_DTYPE_BF16;
  p.batch = c.batch;
  p.heads_q = c.heads_q;
  p.heads_k = c.heads_k;
  p.head_size_qk = c.size_qk;
  p.head_size_v = c.size_v;
  p.seqlen_q = c.group ? c.longest_q : c.rows_q;
  p.seqlen_k = c.group ? c.longest_k : c.rows_k;
  if (c.group) {
    p.total_q = c.rows_q;
    p.total_k = c.rows_k;
    p.cu_seqlens_q = c.starts_q;
    p.cu_seqlens_k = c.starts_k;
    p.seqused_q = c.used_q;
    p.seqused_k = c.used_k;
  }
  // The starts themselves tell of no padding.
  if (c.sums_q != c.starts_q) p.cu_seqused_q = c.sums_q;
  if (c.sums_k != c.starts_k) p.cu_seqused_k = c.sums_k;
  p.softmax_scale = c.scale;
  p.mask = c.mask == 3 ? ATTN_MASK_BOTTOM_RIGHT : c.mask;
  p.window_left = c.left < 0 ? -1 : c.left;
  p.window_right = c.right < 0 ? -1 : c.right;
  p.bias = c.bias_type;
  p.logits_soft_cap = c.cap;
  p.dropout_p = c.p_drop;
  p.dropout_seed = c.seed;
  p.dropout_offset = c.offset;
  p.rng_state = c.rng_state;
  p.kernels = c.use_asm ? ATTN_KERNELS_DEFAULT : ATTN_KERNELS_CK;
  return p;
}

template <typename Args>
void set_shared(const Call& c, const attn_problem* p, Args* args) {
  args->struct_size = sizeof(*args);
  args->problem = p;
  args->q = attn(c.q);
  args->k = attn(c.k);
  args->v = attn(c.v);
  args->o = attn(c.o);
  args->lse = c.wants_lse ? c.lse : nullptr;
  if (c.bias_type == 1) args->bias = attn(c.bias);
  if (c.bias_type == 2) {
    args->alibi_slopes = static_cast<const float*>(c.bias.data);
    args->alibi_stride_batch = c.bias.batch;
  }
  args->sink = c.sink;
}

attn_status forward_by_c_abi(const Call& c) {
  attn_problem p = problem_of(c);
  if (c.group) {
    // The greatest length is not in AITER's struct.
    p.seqlen_k = p.total_k;
    if (c.bias_type == 1) p.seqlen_k = std::min<int32_t>(p.total_k, c.bias.row);
  }
  attn_fwd_args args = {};
  set_shared(c, &p, &args);
  args.min_seqlen_q = c.shortest_q;
  const attn_status status = attn_fwd_workspace_size(&args, &args.workspace_size);
  if (status != ATTN_OK) return status;
  const PoolMemory scratch(args.workspace_size);
  args.workspace = scratch.data();
  return attn_fwd(&args);
}

attn_status backward_by_c_abi(const Call& c) {
  attn_problem p = problem_of(c);
  attn_bwd_args args = {};
  set_shared(c, &p, &args);
  if (c.heads_k == 1) {
    p.heads_k = p.heads_q;
    args.k.stride_head = args.v.stride_head = 0;
  }
  args.dout = attn(c.dout);
  args.dq = attn(c.dq);
  args.dk = attn(c.dk);
  args.dv = attn(c.dv);
  args.deterministic = c.deterministic;
  if (c.wants_dbias) {
    args.bias_grad = 1;
    args.dbias = attn(c.dbias);
  }
  const attn_status status = attn_bwd_workspace_size(&args, &args.workspace_size);
  if (status != ATTN_OK) return status;
  const PoolMemory scratch(args.workspace_size);
  args.workspace = scratch.data();
  return attn_bwd(&args);
}

// Of `count` calls: those that are served, those with a feature, and those with sums of used rows.
struct Counts {
  int served = 0, features = 0, sums = 0;
};

// Random calls by both interfaces: the same launches, or both refuse.
template <typename ByCAbi, typename Consumer>
Counts compare(int count, bool backward, const ByCAbi& by_c_abi, const Consumer& consumer) {
  Counts counts;
  for (int seed = 0; seed < count; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    const Call call = draw.call(backward);
    const Recorder recorder;
    const attn_status status = by_c_abi(call);
    const std::string reason = attn_last_error();
    const std::vector<std::string> wanted = texts_of(recorder);
    const Recorder again;
    ::testing::internal::CaptureStderr();
    const float answer = consumer(call);
    const std::string message = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(answer, status == ATTN_OK ? 0.0f : -1.0f) << message << reason;
    EXPECT_EQ(message.empty(), status == ATTN_OK) << message;
    EXPECT_EQ(texts_of(again), wanted);
    EXPECT_EQ(again.living(), 0u);
    if (::testing::Test::HasFailure()) return counts;
    counts.served += status == ATTN_OK;
    const bool has_feature =
        call.bias_type || call.p_drop > 0 || call.cap > 0 || call.sink || call.deterministic;
    counts.features += status == ATTN_OK && has_feature;
    const bool has_sums = (call.sums_q && call.sums_q != call.starts_q) ||
                          (call.sums_k && call.sums_k != call.starts_k);
    counts.sums += status == ATTN_OK && has_sums;
  }
  return counts;
}

TEST(LaunchesTest, Forward) {
  const Counts counts = compare(kCalls, false, forward_by_c_abi, consumer::forward);
  EXPECT_GT(counts.served, kCalls / 4);
  EXPECT_GT(counts.features, 20);
  EXPECT_GT(counts.sums, 10);
}

TEST(LaunchesTest, Backward) {
  const Counts counts = compare(kCalls, true, backward_by_c_abi, [](const Call& call) {
    std::optional<PoolMemory> scratch;
    int times = 0;
    const float answer = consumer::backward(call, [&](size_t bytes) {
      ++times;
      return scratch.emplace(bytes).data();
    });
    // Some refusals come after it is known how much memory a call takes.
    const int most = consumer::asks_for_workspace() ? 1 : 0;
    EXPECT_LE(times, most);
    if (answer == 0) EXPECT_EQ(times, most);
    return answer;
  });
  EXPECT_GT(counts.served, kCalls / 4);
  EXPECT_GT(counts.features, 20);
  EXPECT_GT(counts.sums, 10);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::compat
