// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "aiter/runtime/driver/drivers.h"
#include "aiter/runtime/driver/hip_api.h"
#include "aiter/runtime/driver/messages.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/hip_versions.h"
#include "aiter/runtime/shared_library.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

class Hip final : public Driver {
 public:
  explicit Hip(SharedLibrary library) : library_(std::move(library)) {
    bind("hipGetErrorName", &get_error_name_);
    bind("hipGetErrorString", &get_error_string_);
    bind("hipGetLastError", &get_last_error_);
    bind("hipRuntimeGetVersion", &runtime_get_version_);
    bind("hipGetDeviceCount", &get_device_count_);
    bind("hipGetDevice", &get_device_);
    bind("hipSetDevice", &set_device_);
    bind("hipGetDevicePropertiesR0600", &get_device_properties_);
    bind("hipModuleLoadData", &module_load_data_);
    bind("hipModuleGetFunction", &module_get_function_);
    bind("hipModuleLaunchKernel", &module_launch_kernel_);
    bind("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", &module_occupancy_);
    bind("hipMemset2DAsync", &memset_2d_async_);
    bind("hipMemsetD32Async", &memset_d32_async_);
    if (device_count() == 0) {
      fail(Status::kDriver, library_.path(), " finds no GPU; is the amdgpu driver loaded, and may ",
           "this user open /dev/kfd?");
    }
  }

  std::string describe() override {
    std::string text = "HIP (" + library_.path() + ")";
    const int count = device_count();
    for (int device = 0; device < count; ++device) {
      text += (device == 0 ? ": " : ", ") + std::to_string(device) + " " + arch(device);
    }
    return text;
  }

  int device_count() override {
    int count = 0;
    const hip::Error error = get_device_count_(&count);
    if (error == hip::kErrorNoDevice) {
      get_last_error_();
      return 0;
    }
    check(error, "hipGetDeviceCount");
    return count;
  }

  std::string arch(int device) override { return facts(device).arch; }

  DeviceLimits limits(int device) override { return facts(device).limits; }

  BeforeEntry enter(int device) override {
    int before = 0;
    check(get_device_(&before), "hipGetDevice");
    if (before != device) check(set_device_(device), concat("hipSetDevice(", device, ")"));
    return {before != device, reinterpret_cast<void*>(static_cast<intptr_t>(before))};
  }

  void leave(const BeforeEntry& before) override {
    const int device = static_cast<int>(reinterpret_cast<intptr_t>(before.context));
    if (before.changed) check(set_device_(device), concat("hipSetDevice(", device, ")"));
  }

  Module load(const void* image) override {
    require_version_for(static_cast<const unsigned char*>(image));
    Module module = nullptr;
    check(module_load_data_(&module, image), "hipModuleLoadData");
    return module;
  }

  Function function(Module module, const char* symbol) override {
    Function function = nullptr;
    check(module_get_function_(&function, module, symbol),
          concat("hipModuleGetFunction(", symbol, ")"));
    return function;
  }

  uint32_t make_resident(Function function, const char* symbol,
                         const Residency& residency) override {
    if (residency.cluster != 1) {
      fail(Status::kInternal, symbol, " is for clusters of ", residency.cluster,
           " workgroups, which AMD GPUs do not have");
    }
    int device = 0, workgroups = 0;
    check(get_device_(&device), "hipGetDevice");
    check(module_occupancy_(&workgroups, function, static_cast<int>(residency.threads),
                            residency.dynamic_lds),
          concat("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(", symbol, ")"));
    return static_cast<uint32_t>(workgroups) * limits(device).multiprocessors;
  }

  void launch(Function function, const char* symbol, const KernelLaunch& launch,
              Stream stream) override {
    const auto& [x, y, z] = launch.grid;
    const auto& [block_x, block_y, block_z] = launch.block;
    for (int i = 0; i < 3; ++i) {
      // HIP counts work-items in 32 bits, and does not say so where they are more.
      if (uint64_t{launch.grid[i]} * launch.block[i] > std::numeric_limits<uint32_t>::max()) {
        fail(Status::kInvalidArgument, symbol, " needs ", launch.grid[i], " workgroups of ",
             launch.block[i], ", more than a GPU launches at once: pass smaller batches");
      }
    }
    size_t size = launch.args_size;
    void* extra[] = {hip::kLaunchParamBufferPointer, const_cast<void*>(launch.args),
                     hip::kLaunchParamBufferSize, &size, hip::kLaunchParamEnd};
    check(module_launch_kernel_(function, x, y, z, block_x, block_y, block_z, launch.dynamic_lds,
                                stream, nullptr, extra),
          concat("hipModuleLaunchKernel(", symbol, ")"));
  }

  void zero_rows(void* data, size_t pitch, size_t width, size_t rows, Stream stream) override {
    check(memset_2d_async_(data, pitch, 0, width, rows, stream), "hipMemset2DAsync");
  }

  void fill_words(void* data, uint32_t value, size_t count, Stream stream) override {
    check(memset_d32_async_(data, static_cast<int>(value), count, stream), "hipMemsetD32Async");
  }

 private:
  struct Facts {
    std::string arch;
    DeviceLimits limits;
  };

  template <typename F>
  void bind(const char* symbol, F* function) {
    library_.bind(symbol, "the HIP runtime of ROCm " + hip_versions(), function);
  }

  // An older runtime would say that the image is invalid, and not why.
  void require_version_for(const unsigned char* image) {
    constexpr unsigned char kElf[] = {0x7f, 'E', 'L', 'F'};
    constexpr size_t kAbiVersionOffset = 8;
    constexpr int kAbiVersionOf6 = 4;  // of an object of version 6; before, one less for each
    constexpr int kMajor = 10000000, kMinor = 100000, kFirst = 6 * kMajor + 2 * kMinor;
    if (std::memcmp(image, kElf, sizeof(kElf)) != 0) return;
    if (image[kAbiVersionOffset] < kAbiVersionOf6) return;
    int version = 0;
    check(runtime_get_version_(&version), "hipRuntimeGetVersion");
    if (version >= kFirst) return;
    fail(Status::kDriver, library_.path(), " is HIP ", version / kMajor, ".",
         version % kMajor / kMinor,
         ", which does not load code objects of version 6: use ROCm 6.2 ",
         "or newer, or a build with --//kernels:code_object_version=5");
  }

  // HIP's own name for the struct is another one, which ubsan would take for another type.
  __attribute__((no_sanitize("function"))) const Facts& facts(int device) {
    const std::lock_guard<std::mutex> lock(facts_mutex_);
    const auto known = facts_.find(device);
    if (known != facts_.end()) return known->second;

    require_device(device, device_count());
    using Properties = hip::DeviceProperties;
    Properties properties = {};
    check(get_device_properties_(&properties, device), "hipGetDeviceProperties");
    const char* field = properties.bytes + Properties::kArchNameOffset;
    Facts facts = {utf8({field, strnlen(field, Properties::kArchNameSize)}), {}};
    if (facts.arch.compare(0, 3, "gfx") != 0) {
      fail(Status::kDriver, library_.path(), " names the arch of device ", device, " '", facts.arch,
           "', which is not a gfx name: this HIP version is not known to this library");
    }
    // gfx942:sramecc+:xnack- -> gfx942
    facts.arch.resize(std::min(facts.arch.find(':'), facts.arch.size()));
    size_t lds = 0;
    std::memcpy(&facts.limits.multiprocessors,
                properties.bytes + Properties::kMultiprocessorsOffset, sizeof(int));
    std::memcpy(&lds, properties.bytes + Properties::kLdsOffset, sizeof(lds));
    facts.limits.lds = static_cast<uint32_t>(lds);
    return facts_.emplace(device, std::move(facts)).first->second;
  }

  void check(hip::Error error, const std::string& call) {
    if (error == hip::kSuccess) return;
    // HIP keeps the error for whoever asks next; it is reported here and is not theirs.
    get_last_error_();
    fail(error == hip::kErrorOutOfMemory ? Status::kOutOfMemory : Status::kDriver, call,
         " failed: ", foreign(get_error_name_(error)), " (", error, "), ",
         foreign(get_error_string_(error)));
  }

  const SharedLibrary library_;
  hip::GetErrorName get_error_name_;
  hip::GetErrorString get_error_string_;
  hip::GetLastError get_last_error_;
  hip::RuntimeGetVersion runtime_get_version_;
  hip::GetDeviceCount get_device_count_;
  hip::GetDevice get_device_;
  hip::SetDevice set_device_;
  hip::GetDeviceProperties get_device_properties_;
  hip::ModuleLoadData module_load_data_;
  hip::ModuleGetFunction module_get_function_;
  hip::ModuleLaunchKernel module_launch_kernel_;
  hip::ModuleOccupancy module_occupancy_;
  hip::Memset2DAsync memset_2d_async_;
  hip::MemsetD32Async memset_d32_async_;

  std::mutex facts_mutex_;
  std::map<int, Facts> facts_;
};

}  // namespace

std::unique_ptr<Driver> open_hip() {
  return std::make_unique<Hip>(
      SharedLibrary::open({"HIP runtime",
                           kHipLibraryVariable,
                           hip_sonames("libamdhip64"),
                           {},
                           "install ROCm's libamdhip64 " + hip_versions()}));
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
