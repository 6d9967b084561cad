// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A program that calls attention by AITER's interface, as TransformerEngine's ck_fused_attn does:
// its own description of a call, which knows neither AITER's structs nor the C ABI's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace consumer {

struct Tensor {
  void* data = nullptr;
  // Elements from entry to entry.
  int32_t batch = 0, row = 0, head = 0;
};

struct Call {
  const char* dtype = "fp16";
  bool group = false;
  int32_t batch = 1, heads_q = 1, heads_k = 1, size_qk = 64, size_v = 64;
  int32_t rows_q = 1, rows_k = 1;        // of an entry; in group mode of all together
  int32_t longest_q = 1, longest_k = 1;  // group mode
  const int32_t* starts_q = nullptr;     // group mode: [batch + 1]
  const int32_t* starts_k = nullptr;
  const int32_t* used_q = nullptr;  // [batch]; NULL: all
  const int32_t* used_k = nullptr;
  // The same as sums, [batch + 1]: given instead.
  const int32_t* sums_q = nullptr;
  const int32_t* sums_k = nullptr;
  // dk and dv have heads_q heads.
  Tensor q, k, v, o, dout, dq, dk, dv, bias, dbias;
  float* lse = nullptr;
  bool wants_lse = true, wants_dbias = false, deterministic = false;
  int32_t bias_type = 0;  // 2: bias.data are slopes, bias.batch their stride
  int32_t mask = 0, left = -1, right = -1;
  float scale = 1, cap = 0, p_drop = 0;
  uint64_t seed = 0, offset = 0;
  const uint64_t* rng_state = nullptr;  // {seed, offset} on the device
  const float* sink = nullptr;
  int32_t shortest_q = 0;
  bool use_asm = false;
  int rounding = 0;
  void* stream = nullptr;
  bool timed = false;
  bool only_check = false;
};

float forward(const Call& call);
// `allocate` gives scratch memory, where the pin asks its caller for it.
float backward(const Call& call, const std::function<void*(size_t)>& allocate);
bool asks_for_workspace();

}  // namespace consumer
