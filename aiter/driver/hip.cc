// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/driver/hip.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "aiter/driver/hip_api.h"
#include "aiter/error.h"

namespace aiter_attn {
namespace {

constexpr const char* kSonames[] = {"libamdhip64.so.7", "libamdhip64.so.6"};

struct Library {
  void* handle;
  std::string path;
};

std::string dl_error() {
  const char* text = dlerror();
  return text ? text : "unknown error";
}

Library open_library() {
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;
  const char* path = std::getenv(kHipLibraryVariable);
  if (path && *path) {
    if (void* handle = dlopen(path, kFlags)) return {handle, path};
    fail(ATTN_ERROR_DRIVER, "cannot load the HIP runtime '", path, "' that ", kHipLibraryVariable,
         " names: ", dl_error(), "; name a libamdhip64.so, or unset the variable");
  }
  // A second HIP runtime beside the one that a framework brought along would know nothing of its
  // memory and streams.
  for (const char* soname : kSonames) {
    if (void* handle = dlopen(soname, kFlags | RTLD_NOLOAD)) return {handle, soname};
  }
  std::string reasons;
  for (const char* soname : kSonames) {
    if (void* handle = dlopen(soname, kFlags)) return {handle, soname};
    reasons += (reasons.empty() ? "" : "; ") + dl_error();
  }
  fail(ATTN_ERROR_DRIVER, "no HIP runtime on this machine (", reasons,
       "); install ROCm's libamdhip64 6 or 7, or name its file in ", kHipLibraryVariable);
}

class Hip : public Driver {
 public:
  explicit Hip(Library library) : library_(std::move(library)) {
    bind("hipGetErrorName", &get_error_name_);
    bind("hipGetErrorString", &get_error_string_);
    bind("hipGetLastError", &get_last_error_);
    bind("hipGetDeviceCount", &get_device_count_);
    bind("hipGetDevice", &get_device_);
    bind("hipSetDevice", &set_device_);
    bind("hipGetDevicePropertiesR0600", &get_device_properties_);
    bind("hipModuleLoadData", &module_load_data_);
    bind("hipModuleGetFunction", &module_get_function_);
    bind("hipModuleLaunchKernel", &module_launch_kernel_);
    bind("hipMemset2DAsync", &memset_2d_async_);
    bind("hipMemsetD32Async", &memset_d32_async_);
    if (device_count() == 0) {
      fail(ATTN_ERROR_DRIVER, library_.path, " finds no GPU; is the amdgpu driver loaded, and may ",
           "this user open /dev/kfd?");
    }
  }

  std::string describe() override {
    std::string text = "HIP (" + library_.path + ")";
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

  std::string arch(int device) override {
    const std::lock_guard<std::mutex> lock(archs_mutex_);
    const auto known = archs_.find(device);
    if (known != archs_.end()) return known->second;

    const int count = device_count();
    if (device < 0 || device >= count) {
      fail(ATTN_ERROR_INVALID_ARGUMENT, "device_id is ", device, ", but this machine has ", count,
           " GPU(s): pass 0 to ", count - 1);
    }
    hip::DeviceProperties properties = {};
    check(get_device_properties_(&properties, device), "hipGetDeviceProperties");
    const char* field = properties.bytes + hip::DeviceProperties::kArchNameOffset;
    std::string name(field, strnlen(field, hip::DeviceProperties::kArchNameSize));
    if (name.compare(0, 3, "gfx") != 0) {
      fail(ATTN_ERROR_DRIVER, library_.path, " names the arch of device ", device, " '", name,
           "', which is not a gfx name: this HIP version is not known to this library");
    }
    name.resize(std::min(name.find(':'), name.size()));  // gfx942:sramecc+:xnack- -> gfx942
    return archs_.emplace(device, std::move(name)).first->second;
  }

  int current_device() override {
    int device = 0;
    check(get_device_(&device), "hipGetDevice");
    return device;
  }

  void make_current(int device) override {
    check(set_device_(device), concat("hipSetDevice(", device, ")"));
  }

  Module load(const void* image) override {
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

  void launch(Function function, const char* symbol, const KernelLaunch& launch,
              uint32_t block_size, Stream stream) override {
    size_t size = launch.kernarg_size;
    void* extra[] = {hip::kLaunchParamBufferPointer, const_cast<unsigned char*>(launch.kernarg),
                     hip::kLaunchParamBufferSize, &size, hip::kLaunchParamEnd};
    check(module_launch_kernel_(function, launch.grid[0], launch.grid[1], launch.grid[2],
                                block_size, 1, 1, 0, stream, nullptr, extra),
          concat("hipModuleLaunchKernel(", symbol, ")"));
  }

  void zero_rows(void* data, size_t pitch, size_t width, size_t rows, Stream stream) override {
    check(memset_2d_async_(data, pitch, 0, width, rows, stream), "hipMemset2DAsync");
  }

  void fill_words(void* data, uint32_t value, size_t count, Stream stream) override {
    check(memset_d32_async_(data, static_cast<int>(value), count, stream), "hipMemsetD32Async");
  }

 private:
  template <typename F>
  void bind(const char* symbol, F* function) {
    *function = reinterpret_cast<F>(dlsym(library_.handle, symbol));
    if (!*function) {
      fail(ATTN_ERROR_DRIVER, library_.path, " has no ", symbol,
           ": this library needs the HIP runtime of ROCm 6 or 7");
    }
  }

  void check(hip::Error error, const std::string& call) {
    if (error == hip::kSuccess) return;
    // HIP keeps the error for whoever asks next; it is reported here and is not theirs.
    get_last_error_();
    fail(error == hip::kErrorOutOfMemory ? ATTN_ERROR_OUT_OF_MEMORY : ATTN_ERROR_DRIVER, call,
         " failed: ", get_error_name_(error), " (", error, "), ", get_error_string_(error));
  }

  const Library library_;
  hip::GetErrorName get_error_name_;
  hip::GetErrorString get_error_string_;
  hip::GetLastError get_last_error_;
  hip::GetDeviceCount get_device_count_;
  hip::GetDevice get_device_;
  hip::SetDevice set_device_;
  hip::GetDeviceProperties get_device_properties_;
  hip::ModuleLoadData module_load_data_;
  hip::ModuleGetFunction module_get_function_;
  hip::ModuleLaunchKernel module_launch_kernel_;
  hip::Memset2DAsync memset_2d_async_;
  hip::MemsetD32Async memset_d32_async_;

  std::mutex archs_mutex_;
  std::map<int, std::string> archs_;
};

}  // namespace

std::unique_ptr<Driver> open_hip() { return std::make_unique<Hip>(open_library()); }

}  // namespace aiter_attn
