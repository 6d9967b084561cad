// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "aiter/runtime/driver/cuda_api.h"
#include "aiter/runtime/driver/drivers.h"
#include "aiter/runtime/driver/messages.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/shared_library.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

class Cuda final : public Driver {
 public:
  explicit Cuda(SharedLibrary library) : library_(std::move(library)) {
    bind("cuInit", &init_);
    bind("cuGetErrorName", &get_error_name_);
    bind("cuGetErrorString", &get_error_string_);
    bind("cuDriverGetVersion", &driver_get_version_);
    bind("cuDeviceGetCount", &device_get_count_);
    bind("cuDeviceGetAttribute", &device_get_attribute_);
    bind("cuDevicePrimaryCtxRetain", &device_primary_ctx_retain_);
    bind("cuCtxGetCurrent", &ctx_get_current_);
    bind("cuCtxSetCurrent", &ctx_set_current_);
    bind("cuThreadExchangeStreamCaptureMode", &thread_exchange_stream_capture_mode_);
    bind("cuModuleLoadData", &module_load_data_);
    bind("cuModuleGetFunction", &module_get_function_);
    bind("cuFuncSetAttribute", &func_set_attribute_);
    bind("cuOccupancyMaxActiveBlocksPerMultiprocessor", &occupancy_max_active_blocks_);
    bind("cuOccupancyMaxActiveClusters", &occupancy_max_active_clusters_);
    bind("cuLaunchKernelEx", &launch_kernel_ex_);
    bind("cuMemsetD2D8Async", &memset_d2d8_async_);
    bind("cuMemsetD32Async", &memset_d32_async_);
    check(driver_get_version_(&version_), "cuDriverGetVersion");
    const cuda::Error error = init_(0);
    if (error != cuda::kErrorNoDevice) check(error, "cuInit");
    if (error == cuda::kErrorNoDevice || device_count() == 0) {
      fail(Status::kDriver, library_.path(),
           " finds no GPU; is the nvidia driver loaded, and does ",
           "CUDA_VISIBLE_DEVICES leave one?");
    }
  }

  std::string describe() override {
    std::string text = concat("CUDA ", version(), " (", library_.path(), ")");
    const int count = device_count();
    for (int device = 0; device < count; ++device) {
      text += (device == 0 ? ": " : ", ") + std::to_string(device) + " " + arch(device);
    }
    return text;
  }

  int device_count() override {
    int count = 0;
    check(device_get_count_(&count), "cuDeviceGetCount");
    return count;
  }

  std::string arch(int device) override { return facts(device).arch; }

  DeviceLimits limits(int device) override { return facts(device).limits; }

  // Frameworks work in a device's primary context; modules live in one context.
  BeforeEntry enter(int device) override {
    void* const wanted = context(device);
    void* before = nullptr;
    check(ctx_get_current_(&before), "cuCtxGetCurrent");
    if (before != wanted) check(ctx_set_current_(wanted), "cuCtxSetCurrent");
    return {before != wanted, before};
  }

  void leave(const BeforeEntry& before) override {
    if (before.changed) check(ctx_set_current_(before.context), "cuCtxSetCurrent");
  }

  Module load(const void* image) override {
    // Modules are loaded on no stream: also while this thread captures one into a graph.
    int mode = cuda::kStreamCaptureModeRelaxed;
    check(thread_exchange_stream_capture_mode_(&mode), "cuThreadExchangeStreamCaptureMode");
    Module module = nullptr;
    const cuda::Error error = module_load_data_(&module, image);
    check(thread_exchange_stream_capture_mode_(&mode), "cuThreadExchangeStreamCaptureMode");
    check(error, "cuModuleLoadData", is_of_code(error) ? newer_code_advice() : "");
    return module;
  }

  Function function(Module module, const char* symbol) override {
    Function function = nullptr;
    check(module_get_function_(&function, module, symbol),
          concat("cuModuleGetFunction(", symbol, ")"));
    return function;
  }

  uint32_t make_resident(Function function, const char* symbol,
                         const Residency& residency) override {
    const auto set = [&](int attribute, uint32_t value) {
      return func_set_attribute_(function, attribute, static_cast<int>(value));
    };
    check(set(cuda::kMaxDynamicSharedSizeBytes, residency.dynamic_lds),
          concat("cuFuncSetAttribute(", symbol, ", ", cuda::kMaxDynamicSharedSizeBytes, ", ",
                 residency.dynamic_lds, ")"));
    int count = 0;
    const uint32_t multiprocessors = limits(current_device()).multiprocessors;
    if (residency.cluster == 1) {
      check(occupancy_max_active_blocks_(&count, function, static_cast<int>(residency.threads),
                                         residency.dynamic_lds),
            concat("cuOccupancyMaxActiveBlocksPerMultiprocessor(", symbol, ")"));
      return static_cast<uint32_t>(count) * multiprocessors;
    }
    // Devices without clusters of this size answer so, or that they hold none.
    cuda::Error error = set(cuda::kNonPortableClusterSizeAllowed, 1);
    if (error == cuda::kErrorInvalidClusterSize) return 0;
    check(error, concat("cuFuncSetAttribute(", symbol, ", ", cuda::kNonPortableClusterSizeAllowed,
                        ", 1)"));
    cuda::LaunchConfig config = {};
    config.grid_x = residency.cluster * multiprocessors;
    config.grid_y = config.grid_z = 1;
    config.block_x = residency.threads;
    config.block_y = config.block_z = 1;
    config.shared_bytes = residency.dynamic_lds;
    error = occupancy_max_active_clusters_(&count, function, &config);
    if (error == cuda::kErrorInvalidClusterSize) return 0;
    check(error, concat("cuOccupancyMaxActiveClusters(", symbol, ")"));
    return static_cast<uint32_t>(count);
  }

  void launch(Function function, const char* symbol, const KernelLaunch& launch,
              Stream stream) override {
    for (int i = 0; i < 3; ++i) {
      if (launch.grid[i] > cuda::kGreatestGrid[i]) {
        fail(Status::kInvalidArgument, symbol, " needs a grid of ", launch.grid[i],
             " workgroups along ", "xyz"[i], ", more than the ", cuda::kGreatestGrid[i],
             " that a GPU launches at once: pass smaller batches");
      }
    }
    cuda::LaunchAttribute waits_itself = {};
    waits_itself.id = cuda::LaunchAttribute::kProgrammaticStreamSerialization;
    waits_itself.value.allowed = 1;
    cuda::LaunchConfig config = {
        launch.grid[0],  launch.grid[1],     launch.grid[2], launch.block[0], launch.block[1],
        launch.block[2], launch.dynamic_lds, stream,         nullptr,         0};
    // Older drivers capture no such launch into a graph.
    if (launch.waits_itself && version_ >= cuda::kEarlyStartsInGraphs) {
      config.attributes = &waits_itself;
      config.attribute_count = 1;
    }
    size_t size = launch.args_size;
    void* extra[] = {cuda::kLaunchParamBufferPointer, const_cast<void*>(launch.args),
                     cuda::kLaunchParamBufferSize, &size, cuda::kLaunchParamEnd};
    const cuda::Error error = launch_kernel_ex_(&config, function, nullptr, extra);
    if (error != cuda::kSuccess) check(error, concat("cuLaunchKernelEx(", symbol, ")"));
  }

  void zero_rows(void* data, size_t pitch, size_t width, size_t rows, Stream stream) override {
    check(memset_d2d8_async_(reinterpret_cast<uintptr_t>(data), pitch, 0, width, rows, stream),
          "cuMemsetD2D8Async");
  }

  void fill_words(void* data, uint32_t value, size_t count, Stream stream) override {
    check(memset_d32_async_(reinterpret_cast<uintptr_t>(data), value, count, stream),
          "cuMemsetD32Async");
  }

 private:
  struct Facts {
    std::string arch;
    DeviceLimits limits;
  };

  template <typename F>
  void bind(const char* symbol, F* function) {
    library_.bind(symbol, "the driver of CUDA 11.8 or newer", function);
  }

  uint32_t attribute(int which, int device) {
    int value = 0;
    check(device_get_attribute_(&value, which, device), "cuDeviceGetAttribute");
    return static_cast<uint32_t>(value);
  }

  const Facts& facts(int device) {
    const std::lock_guard<std::mutex> lock(facts_mutex_);
    const auto known = facts_.find(device);
    if (known != facts_.end()) return known->second;

    require_device(device, device_count());
    Facts facts = {};
    // Ordinals and handles of devices are the same numbers.
    facts.arch = concat("sm_", attribute(cuda::kComputeCapabilityMajor, device),
                        attribute(cuda::kComputeCapabilityMinor, device));
    facts.limits.multiprocessors = attribute(cuda::kMultiprocessorCount, device);
    facts.limits.lds = attribute(cuda::kMaxSharedMemoryPerBlockOptin, device);
    return facts_.emplace(device, std::move(facts)).first->second;
  }

  // A device's primary context, from its first use for the life of the process. It takes memory of
  // the device, and time: no thread waits for another device's context.
  void* context(int device) {
    {
      const std::lock_guard<std::mutex> lock(contexts_mutex_);
      const auto known = contexts_.find(device);
      if (known != contexts_.end()) return known->second;
    }
    require_device(device, device_count());
    void* context = nullptr;
    check(device_primary_ctx_retain_(&context, device),
          concat("cuDevicePrimaryCtxRetain(", device, ")"));
    const std::lock_guard<std::mutex> lock(contexts_mutex_);
    return contexts_[device] = context;  // the same for all threads
  }

  int current_device() {
    void* context = nullptr;
    check(ctx_get_current_(&context), "cuCtxGetCurrent");
    const std::lock_guard<std::mutex> lock(contexts_mutex_);
    for (const auto& [device, known] : contexts_) {
      if (known == context) return device;
    }
    fail(Status::kInternal, "no device is current");
  }

  // Whether an error of loading is the code's. Which one a driver gives for code of a newer CUDA,
  // depends on the driver and on the code.
  static bool is_of_code(cuda::Error error) {
    return error == cuda::kErrorInvalidImage || error == cuda::kErrorNoBinaryForGpu ||
           error == cuda::kErrorInvalidPtx || error == cuda::kErrorUnsupportedPtxVersion;
  }

  std::string newer_code_advice() {
    return concat("; the driver is of CUDA ", version(), ", and code that a newer NVRTC compiled ",
                  "needs a newer driver: update it, or install the driver's version of NVRTC, ",
                  "name its file in AITER_ATTN_NVRTC_LIBRARY and set AITER_ATTN_RTC=1");
  }

  std::string version() const { return concat(version_ / 1000, ".", version_ % 1000 / 10); }

  void check(cuda::Error error, const std::string& call, const std::string& advice = "") {
    if (error == cuda::kSuccess) return;
    const char* name = nullptr;
    const char* text = nullptr;
    get_error_name_(error, &name);
    get_error_string_(error, &text);
    fail(error == cuda::kErrorOutOfMemory ? Status::kOutOfMemory : Status::kDriver, call,
         " failed: ", foreign(name), " (", error, "), ", foreign(text), advice);
  }

  const SharedLibrary library_;
  cuda::Init init_;
  cuda::GetErrorName get_error_name_;
  cuda::GetErrorString get_error_string_;
  cuda::DriverGetVersion driver_get_version_;
  cuda::DeviceGetCount device_get_count_;
  cuda::DeviceGetAttribute device_get_attribute_;
  cuda::DevicePrimaryCtxRetain device_primary_ctx_retain_;
  cuda::CtxGetCurrent ctx_get_current_;
  cuda::CtxSetCurrent ctx_set_current_;
  cuda::ThreadExchangeStreamCaptureMode thread_exchange_stream_capture_mode_;
  cuda::ModuleLoadData module_load_data_;
  cuda::ModuleGetFunction module_get_function_;
  cuda::FuncSetAttribute func_set_attribute_;
  cuda::OccupancyMaxActiveBlocks occupancy_max_active_blocks_;
  cuda::OccupancyMaxActiveClusters occupancy_max_active_clusters_;
  cuda::LaunchKernelEx launch_kernel_ex_;
  cuda::MemsetD2D8Async memset_d2d8_async_;
  cuda::MemsetD32Async memset_d32_async_;

  int version_ = 0;  // of CUDA, of the driver: 12030 is 12.3
  std::mutex facts_mutex_;
  std::map<int, Facts> facts_;
  std::mutex contexts_mutex_;
  std::map<int, void*> contexts_;
};

}  // namespace

std::unique_ptr<Driver> open_cuda() {
  return std::make_unique<Cuda>(SharedLibrary::open(
      {"CUDA driver", kCudaLibraryVariable, {"libcuda.so.1"}, {}, "install NVIDIA's driver"}));
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
