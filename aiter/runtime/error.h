// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// How failures travel inside the library: as an Error, up to the C ABI, which turns it into a
// status and the calling thread's message.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace AITER_ATTN_NAMESPACE::runtime {

// The values are those of the C ABI's attn_status.
enum class Status {
  kOk = 0,
  kInvalidArgument = 1,
  kUnsupported = 2,
  kAbiMismatch = 3,
  kDriver = 4,
  kOutOfMemory = 5,
  kCorrupt = 6,
  kInternal = 7,
  kInterrupted = 8,
};

class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  Status status() const { return status_; }

 private:
  Status status_;
};

// The parts, streamed one after the other.
template <typename... Parts>
std::string concat(Parts&&... parts) {
  std::ostringstream text;
  text.exceptions(std::ios::badbit);  // running out of memory, too, else cuts the text off
  (text << ... << std::forward<Parts>(parts));
  return text.str();
}

// Raises an Error whose message is the concatenated parts.
template <typename... Parts>
[[noreturn]] void fail(Status status, Parts&&... parts) {
  throw Error(status, concat(std::forward<Parts>(parts)...));
}

// Refuses the value of a caller's field: the rest says what is allowed.
template <typename Value, typename... Rest>
[[noreturn]] void refuse(const std::string& field, const Value& value, Rest&&... rest) {
  fail(Status::kInvalidArgument, field, " is ", value, ", but ", std::forward<Rest>(rest)...);
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
