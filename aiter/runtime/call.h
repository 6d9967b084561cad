// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A call of the C ABI, as its thread sees it: nothing is thrown out of it, and its texts live until
// the thread's next call.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <string>

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// Why the calling thread's last call failed; "" if it did not.
const char* thread_message() noexcept;

// The field that it is about, and the index of a sequence; "" and -1: none.
const char* thread_field() noexcept;
int64_t thread_sequence() noexcept;

// Makes them copies.
void set_thread_message(const char* text, const char* field = "", int64_t sequence = -1) noexcept;

// Where the thread's call puts a text that it answers with.
std::string& thread_answer();

// Runs body; an exception of it becomes a status and the thread's message.
template <typename Body>
Status guarded(Body&& body) noexcept {
  set_thread_message("");
  try {
    body();
    return Status::kOk;
  } catch (const Error& error) {
    set_thread_message(error.what(), error.field().c_str(), error.sequence());
    return error.status();
  } catch (const std::bad_alloc&) {
    set_thread_message("out of host memory");
    return Status::kOutOfMemory;
  } catch (const std::exception& error) {
    set_thread_message(error.what());
  } catch (...) {
    set_thread_message("unknown error");
  }
  return Status::kInternal;
}

// Refuses a NULL place for an answer.
template <typename T>
void require_place(const T* place, const char* name, const char* what) {
  if (!place) fail(Status::kInvalidArgument, name, " is NULL: pass where the ", what, " goes");
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
