// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Objects that could not be made, kept in a cache for a while: so that no other process makes them
// in vain at once, and with all that the maker said. A file KEY.failed is text:
//
//   "ATTNFAIL1"; the maker's identity; the size of the message in bytes; then the message, and what
//   the maker said
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "aiter/runtime/error.h"
#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// An object cannot be made, and the next attempt would fail alike. said: all of the maker's output.
class CannotMake : public Error {
 public:
  CannotMake(const std::string& message, std::string said)
      : Error(Status::kInternal, message), said_(std::move(said)) {}
  const std::string& said() const { return said_; }

 private:
  std::string said_;
};

struct KnownFailure {
  std::string message;
  std::chrono::seconds age;
};

Bytes failure_file(const std::string& identity, const std::string& message,
                   const std::string& said);

// Nothing: there is no such file of this user's or of root's, or it is of another maker, older than
// `life`, from the future, or damaged.
std::optional<KnownFailure> read_failure(const std::string& path, const std::string& identity,
                                         std::chrono::seconds life);

}  // namespace AITER_ATTN_NAMESPACE::runtime
