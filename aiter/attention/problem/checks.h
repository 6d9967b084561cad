// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Checks of one field: each throws kInvalidArgument, with the values that are allowed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

#include "aiter/attention/problem/error.h"

namespace AITER_ATTN_NAMESPACE::attention {

inline constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();

inline void require_at_least(const char* field, int32_t value, int32_t least) {
  if (value < least) refuse(field, value, "must be at least ", least);
}

inline void require_aligned(const char* field, const void* data, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(data) % bytes == 0) return;
  refuse(field, data, "must be aligned to ", bytes, " bytes");
}

// reason: to leave the field zero.
template <typename Value, typename... Reason>
void require_unset(const char* field, const Value& value, const Reason&... reason) {
  if (value == Value{}) return;
  fail(Status::kInvalidArgument, Field(field), " is set, but ", reason...);
}

struct Choice {
  int32_t value;
  const char* name;
};

inline void require_one_of(const char* field, int32_t value,
                           std::initializer_list<Choice> choices) {
  for (const Choice& choice : choices) {
    if (value == choice.value) return;
  }
  std::string text;
  for (const Choice& choice : choices) {
    const bool is_last = &choice == choices.end() - 1;
    text += concat(text.empty() ? ""
                   : is_last    ? " or "
                                : ", ",
                   choice.value, " (", choice.name, ")");
  }
  refuse(field, value, "must be ", text);
}

}  // namespace AITER_ATTN_NAMESPACE::attention
