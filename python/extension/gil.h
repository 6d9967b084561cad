// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Calls of the library without the GIL, so that other threads run Python meanwhile.
#pragma once

#include <pybind11/pybind11.h>

#include <stdexcept>

#include "aiter/attn.h"
#include "python/extension/acquire_gil.h"
#include "python/extension/errors.h"

namespace AITER_ATTN_NAMESPACE::python {

// Whether this thread runs signal handlers now that interrupt a call of the library.
bool InInterruptedCall();

// call() must neither throw nor touch Python. Throws std::runtime_error where a signal handler that
// interrupts such a call of this thread makes another one, which the library does not allow.
template <typename Call>
auto WithoutGil(const Call& call) {
  if (InInterruptedCall()) {
    throw std::runtime_error(
        "aiter_attn: called by a signal handler that runs in the middle of another call of this "
        "thread; let the handler raise, or set a flag, and call when that call has returned");
  }
  PyThreadState* const state = PyEval_SaveThread();
  const auto result = call();
  acquire_gil_or_stay(state);
  return result;
}

// call(), which returns its status at once. The library's message is thread-local: it is still this
// call's when the GIL is back.
template <typename Call>
void CheckUnlocked(const Call& call) {
  const attn_status status = WithoutGil(call);
  if (status != ATTN_OK) Raise(status);
}

// While it lives, the library's calls on the CPU in the main thread let Python's signal handlers
// run, some ten times a second, and end if one raises (Ctrl-C: KeyboardInterrupt). Other threads,
// in which Python runs no handler, take no part and pay nothing. Made and destroyed with the GIL
// held.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  // Throws the exception that a handler raised, after any result of the call.
  void Check() const;

 private:
  static int Poll(void* self);

  PyThreadState* state_ = nullptr;  // NULL: not the main thread
  bool raised_ = false;
};

// call(), which computes and returns its status, without the GIL and interruptible. Throws what a
// signal handler raised, or the exception of the status.
template <typename Call>
void Compute(const Call& call) {
  const Interruptible interruptible;
  const attn_status status = WithoutGil(call);
  interruptible.Check();
  if (status != ATTN_OK) Raise(status);
}

}  // namespace AITER_ATTN_NAMESPACE::python
