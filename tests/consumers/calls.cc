// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The consumer's functions with C's names, for Python. Two consumers in one program are compiled
// with names for `consumer`.
#include "aiter/compat/tests/consumer.h"

#define PASTE_(prefix, name) prefix##_##name
#define PASTE(prefix, name) PASTE_(prefix, name)
#define EXPORTED(name) __attribute__((visibility("default"))) PASTE(consumer, name)

extern "C" {

// Of which tests read the layout.
consumer::Call EXPORTED(call);

void EXPORTED(defaults)(consumer::Call* call) { *call = {}; }

float EXPORTED(forward)(const consumer::Call* call) { return consumer::forward(*call); }

float EXPORTED(backward)(const consumer::Call* call, void* (*allocate)(size_t bytes)) {
  return consumer::backward(*call, allocate);
}

int EXPORTED(asks_for_workspace)() { return consumer::asks_for_workspace(); }
}
