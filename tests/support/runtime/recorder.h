// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The records of the recording runtime that an environment variable names, and a way to set its
// environment for a scope.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/runtime/recording_hip.h"

namespace AITER_ATTN_NAMESPACE::testing {

class Recorder {
 public:
  // Forgets earlier records.
  explicit Recorder(const char* variable = "AITER_ATTN_HIP_LIBRARY") {
    const char* path = std::getenv(variable);
    void* library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!library) throw std::runtime_error(std::string(variable) + " names no recording runtime");
    calls_ = reinterpret_cast<decltype(calls_)>(dlsym(library, "recording_hip_calls"));
    const auto reset =
        reinterpret_cast<decltype(&recording_hip_reset)>(dlsym(library, "recording_hip_reset"));
    reset();
    living_ = reinterpret_cast<decltype(living_)>(dlsym(library, "recording_hip_living"));
  }

  std::vector<RecordedCall> all() const {
    size_t count = 0;
    const RecordedCall* calls = calls_(&count);
    return {calls, calls + count};
  }

  std::vector<RecordedCall> of(RecordedKind kind) const {
    std::vector<RecordedCall> found;
    for (const RecordedCall& call : all()) {
      if (call.kind == kind) found.push_back(call);
    }
    return found;
  }

  // Blocks of memory that were not freed.
  size_t living() const { return living_(); }

  // Kinds in order: s(et device), l(oad), k(ernel), f(ill).
  std::string order() const {
    std::string text;
    for (const RecordedCall& call : all()) text += " slkf"[call.kind];
    return text;
  }

 private:
  decltype(&recording_hip_calls) calls_;
  decltype(&recording_hip_living) living_;  // NULL: a runtime without such memory
};

template <typename Kernarg>
Kernarg kernarg_of(const RecordedCall& call) {
  Kernarg kernarg = {};
  if (call.kernarg_size == sizeof(kernarg)) std::memcpy(&kernarg, call.kernarg, sizeof(kernarg));
  return kernarg;
}

class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    const char* before = std::getenv(name);
    was_set_ = before != nullptr;
    if (before) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    if (was_set_) {
      setenv(name_, before_.c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  bool was_set_;
  std::string before_;
};

}  // namespace AITER_ATTN_NAMESPACE::testing
