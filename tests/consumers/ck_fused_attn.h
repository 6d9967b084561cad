// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A layer between a framework and QoLA's functions that makes the calls which TransformerEngine's
// ck_fused_attn makes: what it sets, with which meaning, and how it treats the answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace ck_fused_attn {

struct Operand {
  void* data = nullptr;
  int32_t entry = 0, row = 0, head = 0;  // elements from one to the next
};

struct Problem {
  const char* dtype = "fp16";
  int32_t batch = 1, heads = 1, groups = 1, size_qk = 64, size_v = 64;
  // Of an entry; packed: of the longest one.
  int32_t rows_q = 1, rows_kv = 1;
  // Packed: rows of all entries, padding included, and where entries begin: with their padding, and
  // by the rows that are in use.
  bool packed = false;
  int32_t all_q = 0, all_kv = 0;
  const void *padded_starts_q = nullptr, *padded_starts_kv = nullptr;
  const void *starts_q = nullptr, *starts_kv = nullptr;
  // 0: none; 1: elementwise, of bias_entries x bias_heads matrices, each of which is 1 or all;
  // 2: ALiBi.
  int32_t bias_kind = 0, bias_entries = 1, bias_heads = 1;
  int32_t mask = 0, left = -1, right = -1;
  float scale = 1, drop = 0;
  const void *seed = nullptr, *offset = nullptr;  // on the device
  bool v3 = false, deterministic = false;
  int32_t v3_rounding = 0;
};

struct Stream {
  void* handle = nullptr;
  bool timed = false, only_path = false;
};

// Milliseconds, or 0; of only_path 1 or -1. Throws std::runtime_error where nothing serves the
// call.
float forward(const Problem& p, const Stream& s, const Operand& q, const Operand& k,
              const Operand& v, const void* bias, const Operand& o, float* lse);

// dk and dv have a head for each query head, and dbias an entry for each score: the caller adds
// them up. `scratch` gives memory of the device, 256 bytes aligned.
float backward(const Problem& p, const Stream& s, const Operand& q, const Operand& k,
               const Operand& v, const void* bias, const Operand& o, const float* lse,
               const Operand& dout, const Operand& dq, const Operand& dk, const Operand& dv,
               void* dbias, const std::function<void*(size_t)>& scratch);

}  // namespace ck_fused_attn
