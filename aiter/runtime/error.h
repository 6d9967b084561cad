// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Failures travel inside the library as an Error, up to the C ABI, which turns it into a
// status and the calling thread's message.
#pragma once

#include <cstdint>
#include <ostream>
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

// A field of a caller's struct, with which a message begins: by its name, or an expression that
// begins with its name ("cu_seqlens_q[3]"). sequence: the index of the one that it is about; -1:
// none, or all.
class Field {
 public:
  Field(std::string text, int64_t sequence = -1) : text_(std::move(text)), sequence_(sequence) {}
  Field(const char* text) : Field(std::string(text)) {}
  std::string name() const { return text_.substr(0, text_.find_first_of("[ ")); }
  int64_t sequence() const { return sequence_; }
  friend std::ostream& operator<<(std::ostream& out, const Field& field) {
    return out << field.text_;
  }

 private:
  std::string text_;
  int64_t sequence_;
};

class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  Error(Status status, const std::string& message, const Field& field)
      : std::runtime_error(message),
        status_(status),
        field_(field.name()),
        sequence_(field.sequence()) {}
  Status status() const { return status_; }
  // "": the error is about none.
  const std::string& field() const { return field_; }
  int64_t sequence() const { return sequence_; }

 private:
  Status status_;
  std::string field_;
  int64_t sequence_ = -1;
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

// The same, of a caller's field, which begins the message.
template <typename... Parts>
[[noreturn]] void fail(Status status, Field&& field, Parts&&... parts) {
  throw Error(status, concat(field, std::forward<Parts>(parts)...), field);
}

// Refuses the value of a caller's field: the rest names the allowed ones.
template <typename Value, typename... Rest>
[[noreturn]] void refuse(const Field& field, const Value& value, Rest&&... rest) {
  fail(Status::kInvalidArgument, Field(field), " is ", value, ", but ",
       std::forward<Rest>(rest)...);
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
