// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// AITER's functions over key-value caches with C's names, for Python.
#include "aiter/compat/tests/cached_call.h"

#define EXPORTED __attribute__((visibility("default")))

extern "C" {

// Of which tests read the layout.
EXPORTED consumer::CachedCall consumer_cached_call;

EXPORTED void consumer_cached_defaults(consumer::CachedCall* call) { *call = {}; }

EXPORTED float consumer_splitkv(const consumer::CachedCall* call) {
  return consumer::splitkv(*call, consumer::splitkv_args(*call));
}

EXPORTED float consumer_prefill(const consumer::CachedCall* call) {
  return consumer::prefill(*call, consumer::prefill_args(*call));
}
}
