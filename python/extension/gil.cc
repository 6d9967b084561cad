// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "python/extension/gil.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::python {
namespace {

thread_local bool in_interrupted_call = false;

// The process's first thread, or a child's only one: Python's main thread wherever python3 runs it.
bool IsMainThread() { return syscall(SYS_gettid) == getpid(); }

}  // namespace

bool InInterruptedCall() { return in_interrupted_call; }

Interruptible::Interruptible() {
  if (in_interrupted_call || !IsMainThread()) return;
  state_ = PyThreadState_Get();
  attn_set_interrupt(&Poll, this);
}

Interruptible::~Interruptible() {
  if (state_ != nullptr) attn_set_interrupt(nullptr, nullptr);
}

void Interruptible::Check() const {
  if (raised_) throw pybind11::error_already_set();
}

int Interruptible::Poll(void* self) {
  auto& call = *static_cast<Interruptible*>(self);
  acquire_gil_or_stay(call.state_);
  in_interrupted_call = true;
  call.raised_ = PyErr_CheckSignals() != 0;
  in_interrupted_call = false;
  PyEval_SaveThread();
  return call.raised_;
}

}  // namespace AITER_ATTN_NAMESPACE::python
