// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A stand-in for libcuda, as recording_hip.h describes one for HIP; recording_hip_calls and
// recording_hip_reset are in it, too. It loads the images that the stand-in for NVRTC makes. A
// multiprocessor holds 2048 threads, a device has 132 of them.
//
// Environment, read at every call:
//   AITER_RECORDING_CUDA_CAPABILITIES  one per device; default "90": compute capability 9.0
//   AITER_RECORDING_CUDA_FAIL          "cuModuleLoadData=2,...": the function returns the error
//   AITER_RECORDING_CUDA_MOST_CLUSTER  more CTAs in a cluster the device does not hold; default 16
//   AITER_RECORDING_CUDA_LOG           a file to which every recorded call is appended as JSON
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "aiter/runtime/driver/cuda_api.h"
#include "aiter/runtime/store/digest.h"
#include "tests/support/runtime/fake_hip_environment.h"
#include "tests/support/runtime/recording_state.h"

#define RECORDING_API extern "C" __attribute__((visibility("default")))

namespace {

using namespace AITER_ATTN_NAMESPACE;
using namespace recording;
namespace cuda = runtime::cuda;

constexpr int kInvalidValue = 1;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidImage = 200;
constexpr int kInvalidContext = 201;
constexpr int kInvalidHandle = 400;
constexpr int kStreamCaptureUnsupported = 900;
constexpr int kMultiprocessors = 132;
constexpr int kThreads = 2048;
constexpr char kLog[] = "AITER_RECORDING_CUDA_LOG";

char contexts[8];  // the primary ones: addresses alone
thread_local void* current = nullptr;
thread_local int capture_mode = 0;  // as if a stream were being captured all the time

// The values that cuFuncSetAttribute set, by function and attribute.
std::map<std::pair<const void*, int>, int>& attributes() {
  static auto* const attributes = new std::map<std::pair<const void*, int>, int>;
  return *attributes;
}

std::vector<std::string> capabilities() {
  return fake_hip::listed("AITER_RECORDING_CUDA_CAPABILITIES", "90");
}

int asked_failure(const char* function) {
  return fake_hip::asked_failure("AITER_RECORDING_CUDA_FAIL", function);
}

int current_device() { return static_cast<int>(static_cast<char*>(current) - contexts); }

// A call on the current device.
RecordedCall made(RecordedKind kind, void* stream) {
  RecordedCall call = {};
  call.kind = kind;
  call.device = current_device();
  call.stream = stream;
  return call;
}

void fill(void* data, size_t pitch, size_t width, size_t rows, uint32_t value, void* stream) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  RecordedCall call = made(kRecordedFill, stream);
  call.data = data;
  call.pitch = pitch;
  call.width = width;
  call.rows = rows;
  call.value = value;
  record(call, kLog);
}

}  // namespace

RECORDING_API const RecordedCall* recording_hip_calls(size_t* count) {
  *count = state().calls.size();
  return state().calls.data();
}

RECORDING_API void recording_hip_reset(void) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().calls.clear();
  state().kernargs.clear();
}

RECORDING_API int cuInit(unsigned) { return asked_failure("cuInit"); }

RECORDING_API int cuGetErrorName(int error, const char** name) {
  *name = error == cuda::kErrorOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_RECORDED";
  return 0;
}

RECORDING_API int cuGetErrorString(int error, const char** text) {
  *text = error == cuda::kErrorOutOfMemory ? "out of memory" : "the stand-in was asked to fail";
  return 0;
}

RECORDING_API int cuDriverGetVersion(int* version) {
  const char* asked = std::getenv("AITER_RECORDING_CUDA_VERSION");
  *version = asked ? std::atoi(asked) : 13000;
  return asked_failure("cuDriverGetVersion");
}

RECORDING_API int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(capabilities().size());
  return asked_failure("cuDeviceGetCount");
}

RECORDING_API int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (int error = asked_failure("cuDeviceGetAttribute")) return error;
  if (device < 0 || device >= static_cast<int>(capabilities().size())) return kInvalidDevice;
  const int capability = std::stoi(capabilities()[static_cast<size_t>(device)]);
  switch (attribute) {
    case cuda::kMultiprocessorCount:
      *value = kMultiprocessors;
      return 0;
    case cuda::kComputeCapabilityMajor:
      *value = capability / 10;
      return 0;
    case cuda::kComputeCapabilityMinor:
      *value = capability % 10;
      return 0;
    case cuda::kMaxSharedMemoryPerBlockOptin:
      *value = capability >= 90 ? 227 << 10 : 64 << 10;
      return 0;
    default:
      return kInvalidValue;
  }
}

RECORDING_API int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (int error = asked_failure("cuDevicePrimaryCtxRetain")) return error;
  *context = &contexts[device];
  return 0;
}

RECORDING_API int cuCtxGetCurrent(void** context) {
  *context = current;
  return asked_failure("cuCtxGetCurrent");
}

RECORDING_API int cuCtxSetCurrent(void* context) {
  if (int error = asked_failure("cuCtxSetCurrent")) return error;
  current = context;
  const std::lock_guard<std::mutex> lock(state().mutex);
  RecordedCall call = {};
  call.kind = kRecordedSetDevice;
  call.device = context ? current_device() : -1;
  record(call, kLog);
  return 0;
}

RECORDING_API int cuThreadExchangeStreamCaptureMode(int* mode) {
  if (int error = asked_failure("cuThreadExchangeStreamCaptureMode")) return error;
  std::swap(*mode, capture_mode);
  return 0;
}

RECORDING_API int cuModuleLoadData(void** module, const void* image) {
  if (int error = asked_failure("cuModuleLoadData")) return error;
  if (!current) return kInvalidContext;
  if (capture_mode != cuda::kStreamCaptureModeRelaxed) return kStreamCaptureUnsupported;
  const char* text = static_cast<const char*>(image);
  if (std::strncmp(text, "cubin ", 6) != 0 && std::strncmp(text, "ptx ", 4) != 0) {
    return kInvalidImage;
  }
  const size_t size = std::strlen(text) + 1;
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().modules.push_back(
      {runtime::hex(runtime::sha256(text, size)), std::vector<unsigned char>(text, text + size)});
  const RecordedModule& loaded = state().modules.back();
  *module = const_cast<RecordedModule*>(&loaded);
  RecordedCall call = made(kRecordedLoad, nullptr);
  call.module_sha256 = loaded.sha256.c_str();
  call.module_size = size;
  call.image = loaded.image.data();
  record(call, kLog);
  return 0;
}

RECORDING_API int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (int error = asked_failure("cuModuleGetFunction")) return error;
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().functions.push_back({static_cast<const RecordedModule*>(module), name});
  *function = &state().functions.back();
  return 0;
}

RECORDING_API int cuFuncSetAttribute(void* function, int attribute, int value) {
  if (int error = asked_failure("cuFuncSetAttribute")) return error;
  const std::lock_guard<std::mutex> lock(state().mutex);
  attributes()[{function, attribute}] = value;
  return 0;
}

RECORDING_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function,
                                                              int threads, size_t) {
  if (int error = asked_failure("cuOccupancyMaxActiveBlocksPerMultiprocessor")) return error;
  if (!function) return kInvalidHandle;
  *blocks = kThreads / threads;
  return 0;
}

RECORDING_API int cuOccupancyMaxActiveClusters(int* clusters, void* function,
                                               const cuda::LaunchConfig* config) {
  if (int error = asked_failure("cuOccupancyMaxActiveClusters")) return error;
  if (!function || config->grid_x % kMultiprocessors != 0) return kInvalidValue;
  const int cluster = static_cast<int>(config->grid_x) / kMultiprocessors;
  const char* most = std::getenv("AITER_RECORDING_CUDA_MOST_CLUSTER");
  const bool fits = cluster <= (most ? std::atoi(most) : 16);
  *clusters =
      fits ? kMultiprocessors * (kThreads / static_cast<int>(config->block_x)) / cluster : 0;
  return 0;
}

RECORDING_API int cuLaunchKernelEx(const cuda::LaunchConfig* config, void* function, void** params,
                                   void** extra) {
  if (int error = asked_failure("cuLaunchKernelEx")) return error;
  if (!function) return kInvalidHandle;
  if (!current) return kInvalidContext;
  if (params || !extra || extra[0] != cuda::kLaunchParamBufferPointer ||
      extra[2] != cuda::kLaunchParamBufferSize || extra[4] != cuda::kLaunchParamEnd) {
    return kInvalidValue;
  }
  const auto* recorded = static_cast<const RecordedFunction*>(function);
  const auto* kernarg = static_cast<const unsigned char*>(extra[1]);
  const size_t size = *static_cast<const size_t*>(extra[3]);
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().kernargs.emplace_back(kernarg, kernarg + size);
  RecordedCall call = made(kRecordedLaunch, config->stream);
  call.module_sha256 = recorded->module->sha256.c_str();
  call.module_size = recorded->module->image.size();
  call.image = recorded->module->image.data();
  call.symbol = recorded->symbol.c_str();
  call.grid[0] = config->grid_x, call.grid[1] = config->grid_y, call.grid[2] = config->grid_z;
  call.block[0] = config->block_x, call.block[1] = config->block_y;
  call.block[2] = config->block_z;
  call.shared_bytes = config->shared_bytes;
  const auto set = [&](int attribute) {
    return static_cast<uint32_t>(attributes()[{function, attribute}]);
  };
  call.most_shared_bytes = set(cuda::kMaxDynamicSharedSizeBytes);
  call.wide_clusters = set(cuda::kNonPortableClusterSizeAllowed);
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const cuda::LaunchAttribute& attribute = config->attributes[i];
    if (attribute.id != cuda::LaunchAttribute::kProgrammaticStreamSerialization) {
      return kInvalidValue;
    }
    call.waits_itself = static_cast<uint32_t>(attribute.value.allowed);
  }
  call.kernarg = state().kernargs.back().data();
  call.kernarg_size = size;
  record(call, kLog);
  return 0;
}

RECORDING_API int cuMemsetD2D8Async(uint64_t data, size_t pitch, unsigned char value, size_t width,
                                    size_t rows, void* stream) {
  if (int error = asked_failure("cuMemsetD2D8Async")) return error;
  if (pitch < width) return kInvalidValue;
  char* const bytes = reinterpret_cast<char*>(data);
  for (size_t i = 0; i < rows; ++i) std::memset(bytes + i * pitch, value, width);
  fill(bytes, pitch, width, rows, value * 0x01010101u, stream);
  return 0;
}

RECORDING_API int cuMemsetD32Async(uint64_t data, unsigned value, size_t count, void* stream) {
  if (int error = asked_failure("cuMemsetD32Async")) return error;
  auto* const words = reinterpret_cast<uint32_t*>(data);
  for (size_t i = 0; i < count; ++i) words[i] = value;
  fill(words, count * sizeof(uint32_t), count * sizeof(uint32_t), 1, value, stream);
  return 0;
}
