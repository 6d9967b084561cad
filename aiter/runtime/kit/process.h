// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A program of others, run without a shell and with bounds.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace AITER_ATTN_NAMESPACE::runtime {

struct Command {
  // The first is the path of the program. It gets a process group of its own.
  std::vector<std::string> arguments;
  // All of its environment: NAME=VALUE.
  std::vector<std::string> environment;
  std::chrono::seconds limit;
  // Bytes, of each of its processes; 0: the limit of this process. With it, the time on the
  // processor is limited to `limit` as well, for children of the program that go on where this
  // process is gone: the program itself is killed then.
  uint64_t address_space = 0;
  // Called once, when it has run for a second.
  std::function<void()> takes_long;
};

struct Outcome {
  enum class End {
    kExited,   // status is its exit status
    kSignal,   // status is the signal that ended it
    kUnknown,  // this process does not keep the status of its children
    kTimedOut,
  };
  End end;
  int status;
  // The beginning of all that it wrote to stdout and stderr.
  std::string log;
  bool log_is_cut;
};

// Runs it to its end, or kills its process group: when the limit is over, and when the caller's
// interrupt (interrupt.h) says so. Processes that it left behind are killed in any case. Throws
// Status::kInterrupted then, and Status::kUnsupported or kOutOfMemory where it cannot be started.
Outcome run(const Command& command);

// The arguments as a shell reads them, for people.
std::string shell_form(const std::vector<std::string>& arguments);

}  // namespace AITER_ATTN_NAMESPACE::runtime
