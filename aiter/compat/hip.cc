// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/compat/hip.h"

#include <utility>

#include "aiter/runtime/error.h"
#include "aiter/runtime/hip_versions.h"
#include "aiter/runtime/shared_library.h"

namespace AITER_ATTN_NAMESPACE::compat {
namespace {

using runtime::fail;
using runtime::Status;

constexpr int kErrorOutOfMemory = 2;

// The same runtime that the library's driver finds.
const runtime::SharedLibrary& library() {
  static const runtime::SharedLibrary opened =
      runtime::SharedLibrary::open({"HIP runtime",
                                    runtime::kHipLibraryVariable,
                                    runtime::hip_sonames("libamdhip64"),
                                    {},
                                    "install ROCm's libamdhip64 " + runtime::hip_versions()});
  return opened;
}

// A function of HIP that returns its error, found when it is first called.
template <typename... Args>
class Function {
 public:
  explicit Function(const char* name) : name_(name) {
    library().bind(name, "the HIP runtime of ROCm " + runtime::hip_versions(), &function_);
  }
  int unchecked(Args... args) const { return function_(args...); }
  void operator()(Args... args) const {
    const int error = function_(args...);
    if (error == 0) return;
    // HIP keeps the error for whoever asks next; it is reported here and is not theirs.
    static const Function<> get_last_error("hipGetLastError");
    get_last_error.unchecked();
    fail(error == kErrorOutOfMemory ? Status::kOutOfMemory : Status::kDriver, name_,
         " failed with HIP's error ", error);
  }

 private:
  const char* name_;
  int (*function_)(Args...) = nullptr;
};

}  // namespace

int current_device() {
  static const Function<int*> get_device("hipGetDevice");
  int device = 0;
  get_device(&device);
  return device;
}

Scratch::Scratch(size_t bytes, void* stream) : stream_(stream) {
  static const Function<void**, size_t, void*> malloc_async("hipMallocAsync");
  if (bytes != 0) malloc_async(&data_, bytes, stream);
}

Scratch::~Scratch() {
  if (!data_) return;
  static const Function<void*, void*> free_async("hipFreeAsync");
  free_async.unchecked(data_, stream_);
}

Event::Event() {
  static const Function<void**> create("hipEventCreate");
  create(&event_);
}

Event::~Event() {
  static const Function<void*> destroy("hipEventDestroy");
  destroy.unchecked(event_);
}

void Event::record(void* stream) {
  static const Function<void*, void*> record_event("hipEventRecord");
  record_event(event_, stream);
}

float Event::milliseconds_since(const Event& earlier) {
  static const Function<void*> synchronize("hipEventSynchronize");
  static const Function<float*, void*, void*> elapsed("hipEventElapsedTime");
  synchronize(event_);
  float milliseconds = 0;
  elapsed(&milliseconds, earlier.event_, event_);
  return milliseconds;
}

}  // namespace AITER_ATTN_NAMESPACE::compat
