// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/call.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// The message is a pointer of its own so that running out of memory can still be reported.
struct ThreadState {
  const char* message = "";
  std::string message_text;
  std::string answer;
};

ThreadState& thread_state() {
  thread_local ThreadState state;
  return state;
}

}  // namespace

const char* thread_message() noexcept { return thread_state().message; }

void set_thread_message(const char* text) noexcept {
  ThreadState& state = thread_state();
  if (!*text) {
    state.message = "";
    return;
  }
  try {
    state.message_text = text;
    state.message = state.message_text.c_str();
  } catch (...) {
    state.message = "out of memory while reporting an error";
  }
}

std::string& thread_answer() { return thread_state().answer; }

}  // namespace AITER_ATTN_NAMESPACE::runtime
