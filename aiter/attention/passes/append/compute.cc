// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>
#include <vector>

#include "aiter/attention/passes/append/append.h"
#include "aiter/attention/reference/elements.h"
#include "aiter/attention/reference/sequence.h"
#include "aiter/runtime/parallel.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

// Bits as they are.
void copy_row(const Problem& p, const attn_tensor& from, int64_t from_offset, const attn_tensor& to,
              int64_t to_offset, int64_t count) {
  const auto element = dtype_size(p.dtype);
  std::memcpy(static_cast<char*>(to.data) + to_offset * element,
              static_cast<const char*>(from.data) + from_offset * element, count * element);
}

// Rotates the first elements of heads; rows of different tokens, one after the other.
class Rotation {
 public:
  explicit Rotation(const Problem& p)
      : p_(p),
        cos_table_{const_cast<void*>(p.rotary_cos), 0, 0, 0},
        sin_table_{const_cast<void*>(p.rotary_sin), 0, 0, 0},
        cos_(p.rotary_size / 2),
        sin_(p.rotary_size / 2),
        row_(p.rotary_size) {}

  void apply(const attn_tensor& t, int64_t offset, int64_t token) {
    const int64_t pairs = p_.rotary_size / 2;
    const bool halves = p_.rotary == ATTN_ROTARY_HALVES;
    load_row(cos_table_, p_.dtype, token * pairs, pairs, cos_.data());
    load_row(sin_table_, p_.dtype, token * pairs, pairs, sin_.data());
    load_row(t, p_.dtype, offset, p_.rotary_size, row_.data());
    for (int64_t i = 0; i < pairs; ++i) {
      double& first = row_[halves ? i : 2 * i];
      double& second = row_[halves ? i + pairs : 2 * i + 1];
      const double x = first, y = second;
      first = x * cos_[i] - y * sin_[i];
      second = y * cos_[i] + x * sin_[i];
    }
    store_row(t, p_.dtype, offset, p_.rotary_size, row_.data());
  }

 private:
  const Problem& p_;
  const attn_tensor cos_table_, sin_table_;
  std::vector<double> cos_, sin_, row_;
};

// The new keys and values of one key head of one batch entry.
void append_head(const Problem& p, const Sequence& s, int64_t head, runtime::Pulse& pulse) {
  Rotation rotation(p);
  const auto added = [&](const attn_tensor& t, int64_t i) {
    return s.batch * t.stride_batch + i * t.stride_seq + head * t.stride_head;
  };
  for (int64_t i = 0; i < p.seqlen_new; ++i) {
    const int64_t token = s.keys + i;
    const int64_t key = s.key_row(p.k, head, token);
    copy_row(p, p.k_new, added(p.k_new, i), p.k, key, p.head_size_qk);
    if (has_rotary(p)) rotation.apply(p.k, key, token);
    copy_row(p, p.v_new, added(p.v_new, i), p.v, s.key_row(p.v, head, token), p.head_size_v);
    pulse(int64_t{p.head_size_qk} + p.head_size_v);
  }
}

void rotate_queries(const Problem& p, const Sequence& s, int64_t head, runtime::Pulse& pulse) {
  Rotation rotation(p);
  for (int64_t i = 0; i < s.queries; ++i) {
    const int64_t token = s.keys + (p.mask == ATTN_MASK_NONE ? 0 : i);
    rotation.apply(p.q, s.query_row(p.q, head, i), token);
    pulse(p.rotary_size);
  }
}

}  // namespace

void compute_append(const Problem& p) {
  if (!p.pass->has_work(p)) return;
  const int64_t key_heads = p.seqlen_new == 0 ? 0 : p.heads_k;
  const int64_t heads = key_heads + (has_rotary(p) && p.seqlen_q != 0 ? p.heads_q : 0);
  const double steps = 1.0 * p.batch *
                       (1.0 * key_heads * p.seqlen_new * (p.head_size_qk + p.head_size_v) +
                        1.0 * (heads - key_heads) * p.seqlen_q * p.rotary_size);
  runtime::parallel_for({p.batch * heads, steps, 2.0 * p.rotary_size * sizeof(double)},
                        [&](int64_t item, runtime::Pulse& pulse) {
                          const Sequence s(p, static_cast<int32_t>(item / heads));
                          const int64_t head = item % heads;
                          if (head < key_heads) {
                            append_head(p, s, head, pulse);
                          } else {
                            rotate_queries(p, s, head - key_heads, pulse);
                          }
                        });
}

}  // namespace AITER_ATTN_NAMESPACE::attention
