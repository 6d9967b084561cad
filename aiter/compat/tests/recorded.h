// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Calls against the recording HIP: the memory that they are given, and what they launched.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/attention/test_launch_table.h"
#include "tests/support/runtime/recorder.h"

namespace AITER_ATTN_NAMESPACE::compat {

// Memory of a "GPU": parts of one block, 256 bytes aligned.
class Memory {
 public:
  void* take(size_t bytes) {
    blocks_.emplace_back(static_cast<char*>(std::aligned_alloc(256, (bytes + 511) / 256 * 256)),
                         std::free);
    std::memset(blocks_.back().get(), 0, bytes);
    return blocks_.back().get();
  }

 private:
  std::vector<std::unique_ptr<char, decltype(&std::free)>> blocks_;
};

// Memory of HIP's pool, as a caller takes it: a block that was freed is the next one of its size,
// so that both calls get the same.
class PoolMemory {
 public:
  explicit PoolMemory(size_t bytes) {
    if (bytes) function<int (*)(void**, size_t, void*)>("hipMallocAsync")(&data_, bytes, nullptr);
  }
  ~PoolMemory() {
    if (data_) function<int (*)(void*, void*)>("hipFreeAsync")(data_, nullptr);
  }
  PoolMemory(const PoolMemory&) = delete;
  void* data() const { return data_; }

 private:
  template <typename F>
  static F function(const char* name) {
    static void* const library = dlopen(std::getenv("AITER_ATTN_HIP_LIBRARY"), RTLD_NOW);
    return reinterpret_cast<F>(dlsym(library, name));
  }

  void* data_ = nullptr;
};

// A launch or a fill, whole, as text.
inline std::string text_of(const RecordedCall& call) {
  std::string text = call.symbol ? std::string(call.symbol) + call.module_sha256 : "";
  const auto add = [&text](const auto&... values) {
    (text.append(reinterpret_cast<const char*>(&values), sizeof(values)), ...);
  };
  add(call.kind, call.device, call.grid, call.block, call.shared_bytes, call.stream, call.data,
      call.pitch, call.width, call.rows, call.value);
  if (call.kind != kRecordedLaunch) return text;
  const auto k = testing::kernarg_of<testing::TestKernarg>(call);
  add(k.problem, k.q, k.k, k.v, k.o, k.dout, k.dq, k.dk, k.dv, k.lse, k.delta, k.dq_acc,
      k.dq_acc_by_head, k.sum_from, k.sum_to, k.sum_head_size, k.kept, k.sink, k.dsink, k.features);
  return text;
}

// All but the loading of modules, which only the first call of each does.
inline std::vector<std::string> texts_of(const testing::Recorder& recorder) {
  std::vector<std::string> all;
  for (const RecordedCall& call : recorder.all()) {
    if (call.kind != kRecordedLoad) all.push_back(text_of(call));
  }
  return all;
}

}  // namespace AITER_ATTN_NAMESPACE::compat
