// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The records that a stand-in for a GPU runtime keeps of its calls.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/runtime/recording_hip.h"

namespace recording {

struct RecordedModule {
  std::string sha256;
  std::vector<unsigned char> image;
};

struct RecordedFunction {
  const RecordedModule* module;
  std::string symbol;
};

struct State {
  std::mutex mutex;
  // Deques and pointers: what a RecordedCall points to must not move.
  std::vector<RecordedCall> calls;
  std::deque<std::vector<unsigned char>> kernargs;
  std::deque<RecordedModule> modules;
  std::deque<RecordedFunction> functions;
};

inline State& state() {
  static State* const state = new State;
  return *state;
}

inline std::string hex(const unsigned char* bytes, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", bytes[i]);
    text += digits;
  }
  return text;
}

inline std::string json(const RecordedCall& c) {
  static constexpr const char* kKinds[] = {"", "set_device", "load", "launch", "fill"};
  char text[1024];
  std::snprintf(text, sizeof(text),
                R"({"call": "%s", "device": %d, "module_sha256": "%s", "module_size": %zu, )"
                R"("symbol": "%s", "grid": [%u, %u, %u], "block": [%u, %u, %u], )"
                R"("shared_bytes": %u, "stream": %zu, "data": %zu, "pitch": %zu, "width": %zu, )"
                R"("rows": %zu, "value": %u, "kernarg": ")",
                kKinds[c.kind], c.device, c.module_sha256 ? c.module_sha256 : "", c.module_size,
                c.symbol ? c.symbol : "", c.grid[0], c.grid[1], c.grid[2], c.block[0], c.block[1],
                c.block[2], c.shared_bytes, reinterpret_cast<size_t>(c.stream),
                reinterpret_cast<size_t>(c.data), c.pitch, c.width, c.rows, c.value);
  return text + hex(c.kernarg, c.kernarg_size) + "\"}";
}

// The state's mutex is held.
inline void record(const RecordedCall& call, const char* log_variable) {
  state().calls.push_back(call);
  const char* path = std::getenv(log_variable);
  if (path && *path) std::ofstream(path, std::ios::app) << json(call) << "\n";
}

}  // namespace recording
