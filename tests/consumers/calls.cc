// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The consumer's functions with C's names, for Python.
#include "aiter/compat/tests/consumer.h"

#define EXPORTED __attribute__((visibility("default")))

extern "C" {

// Of which tests read the layout.
EXPORTED consumer::Call consumer_call;

EXPORTED void consumer_defaults(consumer::Call* call) { *call = {}; }

EXPORTED float consumer_forward(const consumer::Call* call) { return consumer::forward(*call); }

EXPORTED float consumer_backward(const consumer::Call* call, void* (*allocate)(size_t bytes)) {
  return consumer::backward(*call, allocate);
}

EXPORTED int consumer_asks_for_workspace() { return consumer::asks_for_workspace(); }
}
