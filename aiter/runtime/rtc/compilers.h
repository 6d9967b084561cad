// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The compilers of a process, each opened when it is first needed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "aiter/runtime/fork_mutex.h"
#include "aiter/runtime/rtc/compiler.h"

namespace AITER_ATTN_NAMESPACE::runtime {

class Compilers {
 public:
  // open_compiler with its folders, or a test's function in its place.
  using Open = std::function<std::unique_ptr<Compiler>(const std::string& arch)>;
  explicit Compilers(Open open) : open_(std::move(open)) {}

  // The one that compiles for an arch or a target: sm_90, compute_90, gfx942. Throws what opening
  // it throws; the next call tries again.
  const Compiler& for_arch(const std::string& arch);

 private:
  struct Slot {
    OpeningMutex mutex;
    std::unique_ptr<const Compiler> compiler;
  };

  const Open open_;
  Slot amd_, nvidia_;
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
