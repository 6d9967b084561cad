// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/call.h"

#include <pthread.h>

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

struct Texts {
  std::string message;
  std::string field;
  std::string answer;
};

// No constructor and no destructor: a thread's first use of it takes no memory, so that running out
// of memory can be reported. For a destructor glibc takes some, and ends the process where there is
// none.
struct ThreadState {
  const char* message;  // NULL: ""
  const char* field;    // NULL: none
  int64_t sequence;
  Texts* texts;  // NULL: none yet
};

thread_local ThreadState thread_state;

// Destroys the texts of threads that end.
class TextsOfThreads {
 public:
  TextsOfThreads() noexcept { is_made_ = pthread_key_create(&key_, &destroy) == 0; }
  ~TextsOfThreads() {
    if (is_made_) pthread_key_delete(key_);
  }
  TextsOfThreads(const TextsOfThreads&) = delete;

  // Where this fails the texts outlive their thread.
  void add(Texts* texts) const {
    if (is_made_) pthread_setspecific(key_, texts);
  }

 private:
  static void destroy(void* texts) { delete static_cast<Texts*>(texts); }

  pthread_key_t key_;
  bool is_made_;
};

// Made when the library is loaded: the guard of a static local is C++'s own, linked in, so that
// tsan cannot see its order.
const TextsOfThreads texts_of_threads;

Texts& thread_texts() {
  if (!thread_state.texts) {
    thread_state.texts = new Texts;
    texts_of_threads.add(thread_state.texts);
  }
  return *thread_state.texts;
}

}  // namespace

const char* thread_message() noexcept { return thread_state.message ? thread_state.message : ""; }

const char* thread_field() noexcept { return thread_state.field ? thread_state.field : ""; }

int64_t thread_sequence() noexcept { return thread_state.field ? thread_state.sequence : -1; }

void set_thread_message(const char* text, const char* field, int64_t sequence) noexcept {
  thread_state.message = thread_state.field = nullptr;
  if (!*text) return;
  try {
    Texts& texts = thread_texts();
    texts.message = text;
    texts.field = field;
    thread_state = {texts.message.c_str(), texts.field.c_str(), sequence, &texts};
  } catch (...) {
    thread_state.message = "out of memory while reporting an error";
  }
}

std::string& thread_answer() { return thread_texts().answer; }

}  // namespace AITER_ATTN_NAMESPACE::runtime
