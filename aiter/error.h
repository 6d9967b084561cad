// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// How failures travel inside the library: as an Error, up to the C ABI, which turns it into a
// status and the calling thread's message.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "aiter/attn.h"

namespace aiter_attn {

class Error : public std::runtime_error {
 public:
  Error(attn_status status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  attn_status status() const { return status_; }

 private:
  attn_status status_;
};

// The parts, streamed one after the other.
template <typename... Parts>
std::string concat(Parts&&... parts) {
  std::ostringstream text;
  (text << ... << std::forward<Parts>(parts));
  return text.str();
}

// Raises an Error whose message is the concatenated parts.
template <typename... Parts>
[[noreturn]] void fail(attn_status status, Parts&&... parts) {
  throw Error(status, concat(std::forward<Parts>(parts)...));
}

}  // namespace aiter_attn
