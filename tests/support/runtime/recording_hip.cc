// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "tests/support/runtime/recording_hip.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "aiter/runtime/driver/hip_api.h"
#include "aiter/runtime/store/digest.h"
#include "tests/support/runtime/fake_hip_environment.h"
#include "tests/support/runtime/recording_state.h"
#include "tests/support/runtime/tiny_elf.h"

#define RECORDING_API extern "C" __attribute__((visibility("default")))

namespace {

using namespace AITER_ATTN_NAMESPACE;
using namespace recording;
namespace hip = runtime::hip;

constexpr int kInvalidValue = 1;
constexpr int kInvalidImage = 200;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidHandle = 400;
constexpr int kNotFound = 500;

thread_local int current_device = 0;
thread_local int last_error = 0;

std::vector<std::string> archs() {
  return fake_hip::listed("AITER_RECORDING_HIP_ARCHS", "gfx942:sramecc+:xnack-");
}

int finish(int error) {
  if (error) last_error = error;
  return error;
}

bool is_elf(const unsigned char* image) {
  return std::memcmp(image,
                     "\x7f"
                     "ELF",
                     4) == 0;
}

// The form of a code object that the stand-in for hipRTC makes.
bool is_text(const unsigned char* image) { return std::memcmp(image, "hip ", 4) == 0; }

// The error that the environment asks for.
int asked_failure(const char* function) {
  return finish(fake_hip::asked_failure("AITER_RECORDING_HIP_FAIL", function));
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

RECORDING_API const char* hipGetErrorName(int error) {
  if (const char* said = std::getenv("AITER_RECORDING_HIP_ERROR")) return said;
  return error == hip::kErrorOutOfMemory ? "hipErrorOutOfMemory" : "hipErrorRecorded";
}

RECORDING_API const char* hipGetErrorString(int error) {
  if (const char* said = std::getenv("AITER_RECORDING_HIP_ERROR")) return said;
  return error == hip::kErrorOutOfMemory ? "out of memory" : "the stand-in was asked to fail";
}

RECORDING_API int hipGetLastError() {
  const int error = last_error;
  last_error = 0;
  return error;
}

RECORDING_API int hipRuntimeGetVersion(int* version) {
  if (int error = asked_failure("hipRuntimeGetVersion")) return error;
  const char* const given = std::getenv("AITER_RECORDING_HIP_VERSION");
  *version = given ? static_cast<int>(std::strtol(given, nullptr, 10)) : 60443480;
  return 0;
}

RECORDING_API int hipGetDeviceCount(int* count) {
  if (int error = asked_failure("hipGetDeviceCount")) return error;
  *count = static_cast<int>(archs().size());
  return *count ? 0 : finish(hip::kErrorNoDevice);
}

RECORDING_API int hipGetDevice(int* device) {
  if (int error = asked_failure("hipGetDevice")) return error;
  *device = current_device;
  return 0;
}

RECORDING_API int hipSetDevice(int device) {
  if (int error = asked_failure("hipSetDevice")) return error;
  if (device < 0 || device >= static_cast<int>(archs().size())) return finish(kInvalidDevice);
  current_device = device;
  const std::lock_guard<std::mutex> lock(state().mutex);
  RecordedCall call = {};
  call.kind = kRecordedSetDevice;
  call.device = device;
  record(call, "AITER_RECORDING_HIP_LOG");
  return 0;
}

RECORDING_API int hipGetDevicePropertiesR0600(char* properties, int device) {
  if (int error = asked_failure("hipGetDevicePropertiesR0600")) return error;
  if (device < 0 || device >= static_cast<int>(archs().size())) return finish(kInvalidDevice);
  using Properties = hip::DeviceProperties;
  // As HIP does it: all of the struct is written, and nothing beyond.
  std::memset(properties, 0, Properties::kSize);
  std::snprintf(properties + Properties::kArchNameOffset, Properties::kArchNameSize, "%s",
                archs()[device].c_str());
  const int multiprocessors = 304;
  const size_t lds = 64 << 10;
  std::memcpy(properties + Properties::kMultiprocessorsOffset, &multiprocessors, sizeof(int));
  std::memcpy(properties + Properties::kLdsOffset, &lds, sizeof(lds));
  return 0;
}

RECORDING_API int hipModuleLoadData(void** module, const void* image) {
  if (int error = asked_failure("hipModuleLoadData")) return error;
  const auto* bytes = static_cast<const unsigned char*>(image);
  if (!is_elf(bytes) && !is_text(bytes)) return finish(kInvalidImage);
  const size_t size = is_elf(bytes) ? testing::elf_image_size(image)
                                    : std::strlen(static_cast<const char*>(image)) + 1;
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().modules.push_back({runtime::hex(runtime::sha256(bytes, size)),
                             std::vector<unsigned char>(bytes, bytes + size)});
  const RecordedModule& loaded = state().modules.back();
  *module = const_cast<RecordedModule*>(&loaded);
  RecordedCall call = {};
  call.kind = kRecordedLoad;
  call.device = current_device;
  call.module_sha256 = loaded.sha256.c_str();
  call.module_size = size;
  call.image = loaded.image.data();
  record(call, "AITER_RECORDING_HIP_LOG");
  return 0;
}

RECORDING_API int hipModuleGetFunction(void** function, void* module, const char* name) {
  if (int error = asked_failure("hipModuleGetFunction")) return error;
  const auto* loaded = static_cast<const RecordedModule*>(module);
  if (is_elf(loaded->image.data()) &&
      !testing::elf_has_symbol(loaded->image.data(), std::string(name) + ".kd")) {
    return finish(kNotFound);
  }
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().functions.push_back({loaded, name});
  *function = &state().functions.back();
  return 0;
}

RECORDING_API int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* workgroups,
                                                                     void* function, int threads,
                                                                     size_t) {
  if (int error = asked_failure("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor")) return error;
  if (!function) return finish(kInvalidHandle);
  *workgroups = 2048 / threads;
  return 0;
}

RECORDING_API int hipModuleLaunchKernel(void* function, unsigned grid_x, unsigned grid_y,
                                        unsigned grid_z, unsigned block_x, unsigned block_y,
                                        unsigned block_z, unsigned shared_bytes, void* stream,
                                        void** params, void** extra) {
  if (int error = asked_failure("hipModuleLaunchKernel")) return error;
  if (!function) return finish(kInvalidHandle);
  if (params || !extra || extra[0] != hip::kLaunchParamBufferPointer ||
      extra[2] != hip::kLaunchParamBufferSize || extra[4] != hip::kLaunchParamEnd) {
    return finish(kInvalidValue);
  }
  const auto* recorded = static_cast<const RecordedFunction*>(function);
  const auto* kernarg = static_cast<const unsigned char*>(extra[1]);
  const size_t size = *static_cast<const size_t*>(extra[3]);
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().kernargs.emplace_back(kernarg, kernarg + size);
  RecordedCall call = {};
  call.kind = kRecordedLaunch;
  call.device = current_device;
  call.module_sha256 = recorded->module->sha256.c_str();
  call.module_size = recorded->module->image.size();
  call.image = recorded->module->image.data();
  call.symbol = recorded->symbol.c_str();
  call.grid[0] = grid_x, call.grid[1] = grid_y, call.grid[2] = grid_z;
  call.block[0] = block_x, call.block[1] = block_y, call.block[2] = block_z;
  call.shared_bytes = shared_bytes;
  call.kernarg = state().kernargs.back().data();
  call.kernarg_size = size;
  call.stream = stream;
  record(call, "AITER_RECORDING_HIP_LOG");
  return 0;
}

RECORDING_API int hipMemset2DAsync(void* data, size_t pitch, int value, size_t width, size_t rows,
                                   void* stream) {
  if (int error = asked_failure("hipMemset2DAsync")) return error;
  if (pitch < width) return finish(kInvalidValue);
  for (size_t i = 0; i < rows; ++i) std::memset(static_cast<char*>(data) + i * pitch, value, width);
  const std::lock_guard<std::mutex> lock(state().mutex);
  RecordedCall call = {};
  call.kind = kRecordedFill;
  call.device = current_device;
  call.stream = stream;
  call.data = data;
  call.pitch = pitch;
  call.width = width;
  call.rows = rows;
  call.value = static_cast<uint32_t>(value & 0xff) * 0x01010101u;
  record(call, "AITER_RECORDING_HIP_LOG");
  return 0;
}

RECORDING_API int hipMemsetD32Async(void* data, int value, size_t count, void* stream) {
  if (int error = asked_failure("hipMemsetD32Async")) return error;
  for (size_t i = 0; i < count; ++i) static_cast<int*>(data)[i] = value;
  const std::lock_guard<std::mutex> lock(state().mutex);
  RecordedCall call = {};
  call.kind = kRecordedFill;
  call.device = current_device;
  call.stream = stream;
  call.data = data;
  call.pitch = count * sizeof(int);
  call.width = count * sizeof(int);
  call.rows = 1;
  call.value = static_cast<uint32_t>(value);
  record(call, "AITER_RECORDING_HIP_LOG");
  return 0;
}

// Device memory is the host's. A block that was freed is the next one of its size.

namespace {

struct Pool {
  std::map<void*, size_t> living;
  std::multimap<size_t, void*> freed;
};

Pool& pool() {
  static Pool* const made = new Pool;
  return *made;
}

}  // namespace

RECORDING_API size_t recording_hip_living(void) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  return pool().living.size();
}

RECORDING_API int hipMallocAsync(void** data, size_t bytes, void*) {
  if (int error = asked_failure("hipMallocAsync")) return error;
  const std::lock_guard<std::mutex> lock(state().mutex);
  const auto found = pool().freed.find(bytes);
  if (found != pool().freed.end()) {
    *data = found->second;
    pool().freed.erase(found);
  } else {
    *data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*data) return finish(hip::kErrorOutOfMemory);
  }
  std::memset(*data, 0x5a, bytes);
  pool().living[*data] = bytes;
  return 0;
}

RECORDING_API int hipFreeAsync(void* data, void*) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  const auto found = pool().living.find(data);
  if (found == pool().living.end()) return finish(kInvalidValue);
  pool().freed.emplace(found->second, data);
  pool().living.erase(found);
  return 0;
}

// A GPU's time is the number of launches since the last reset, in milliseconds.

namespace {

struct RecordedEvent {
  float milliseconds;
};

float now() {
  float launches = 0;
  for (const RecordedCall& call : state().calls) launches += call.kind == kRecordedLaunch;
  return launches;
}

}  // namespace

RECORDING_API int hipEventCreate(void** event) {
  if (int error = asked_failure("hipEventCreate")) return error;
  *event = new RecordedEvent{};
  return 0;
}

RECORDING_API int hipEventDestroy(void* event) {
  delete static_cast<RecordedEvent*>(event);
  return 0;
}

RECORDING_API int hipEventRecord(void* event, void*) {
  if (int error = asked_failure("hipEventRecord")) return error;
  const std::lock_guard<std::mutex> lock(state().mutex);
  static_cast<RecordedEvent*>(event)->milliseconds = now();
  return 0;
}

RECORDING_API int hipEventSynchronize(void*) { return asked_failure("hipEventSynchronize"); }

RECORDING_API int hipEventElapsedTime(float* milliseconds, void* start, void* stop) {
  *milliseconds = static_cast<RecordedEvent*>(stop)->milliseconds -
                  static_cast<RecordedEvent*>(start)->milliseconds;
  return 0;
}
