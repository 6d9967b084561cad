// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A HIP runtime without a GPU: HIP's C ABI in front of an EmulatedHipBackend.
//
//   EMULATED_HIP_DEVICES  archs of the devices, records of kernels/archs, by comma; default gfx942
//   EMULATED_HIP_MEMORY   bytes of memory of each device; default 192 GiB
//   EMULATED_HIP_FAIL     FUNCTION=ERROR[,FUNCTION=ERROR...]: these functions return the error
//
// They are read at every call. Device pointers are reserved addresses that no host code can read:
// a dereference of one by the host is a segmentation fault. A freed address is never used again.

#include <elf.h>
#include <hip/hip_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/archs/archs.h"
#include "tests/emulator/hip/backend.h"
#include "tests/support/runtime/fake_hip_environment.h"
#include "tests/support/runtime/tiny_elf.h"

namespace {

namespace kernels = AITER_ATTN_NAMESPACE::kernels;
// The facts of a device's arch; the rest is the same for all devices.
using kernels::ArchFacts;

constexpr uint16_t kMachineAmdGpu = 224;
constexpr size_t kGiB = size_t{1} << 30;
constexpr size_t kPage = 4096;
constexpr int kWorkgroupsPerUnit = 32;
constexpr uint32_t kMostArguments = 256;
constexpr size_t kMemory = 192 * kGiB;
constexpr int kClock = 2100000, kMemoryClock = 1300000;  // kHz

struct ErrorText {
  hipError_t error;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNotInitialized, "hipErrorNotInitialized",
     "no emulator is attached to this HIP runtime: call emulated_hip.attach() first"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration", "invalid configuration"},
    {hipErrorNoDevice, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hipErrorInvalidImage, "hipErrorInvalidImage", "device kernel image is invalid"},
    {hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu",
     "no kernel image is available for execution on the device"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {hipErrorNotFound, "hipErrorNotFound", "named symbol not found"},
    {hipErrorNotReady, "hipErrorNotReady", "device not ready"},
    {hipErrorIllegalAddress, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "unspecified launch failure"},
    {hipErrorNotSupported, "hipErrorNotSupported", "operation not supported"},
    {hipErrorUnknown, "hipErrorUnknown", "unknown error"},
};

std::atomic<const EmulatedHipBackend*> attached{nullptr};
// The process ends: who cleans up still is told that it went well.
std::atomic<bool> has_ended{false};
// Calls that are in the backend, or on their way there.
std::atomic<int> calls_in_flight{0};

struct CallInFlight {
  CallInFlight() { ++calls_in_flight; }
  ~CallInFlight() { --calls_in_flight; }
};

thread_local int current_device = 0;
thread_local hipError_t last_error = hipSuccess;

// Where allocations are, by address.
struct Allocation {
  int device;
  size_t bytes;
};
std::mutex allocations_mutex;
std::map<uint64_t, Allocation>& allocations() {
  static auto* const map = new std::map<uint64_t, Allocation>;
  return *map;
}

hipError_t finish(int error) {
  if (error) last_error = static_cast<hipError_t>(error);
  return static_cast<hipError_t>(error);
}

std::vector<const ArchFacts*> devices() {
  std::vector<const ArchFacts*> found;
  for (const std::string& arch : fake_hip::listed("EMULATED_HIP_DEVICES", "gfx942")) {
    found.push_back(kernels::find_arch(arch));
    if (found.back()) continue;
    std::fprintf(stderr, "EMULATED_HIP_DEVICES: %s; known:", arch.c_str());
    for (const ArchFacts& known : kernels::kArchs) std::fprintf(stderr, " %s", known.name.data());
    std::fprintf(stderr, "\n");
    std::abort();
  }
  return found;
}

const ArchFacts* device_arch(int device) {
  const auto all = devices();
  return device >= 0 && device < static_cast<int>(all.size()) ? all[device] : nullptr;
}

size_t memory() {
  const char* value = std::getenv("EMULATED_HIP_MEMORY");
  return value ? std::strtoull(value, nullptr, 0) : kMemory;
}

std::string product_of(const ArchFacts& arch) {
  return "AMD " + std::string(arch.name) + " (emulated)";
}

// The allocations' mutex is held.
size_t memory_used(int device) {
  size_t used = 0;
  for (const auto& [address, allocation] : allocations()) {
    if (allocation.device == device) used += allocation.bytes;
  }
  return used;
}

template <typename T>
uint64_t number(T* handle) {
  return reinterpret_cast<uint64_t>(handle);
}

template <typename T>
T handle_of(uint64_t number) {
  return reinterpret_cast<T>(number);
}

hipError_t allocate(const EmulatedHipBackend* backend, void** pointer, size_t bytes, int device) {
  if (!pointer) return finish(hipErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return hipSuccess;
  if (!device_arch(device)) return finish(hipErrorInvalidDevice);
  const size_t pages = (bytes + kPage - 1) / kPage + 2;  // and one on each side
  void* const reserved =
      mmap(nullptr, pages * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return finish(hipErrorOutOfMemory);
  const uint64_t address = number(reserved) + kPage;
  {
    const std::lock_guard<std::mutex> lock(allocations_mutex);
    const size_t used = memory_used(device), total = memory();
    if (bytes > total || used > total - bytes) {
      munmap(reserved, pages * kPage);
      return finish(hipErrorOutOfMemory);
    }
    allocations()[address] = {device, bytes};
  }
  // The mutex is free: Python may collect garbage in there, and free memory.
  if (int error = backend->allocate(device, address, bytes)) {
    const std::lock_guard<std::mutex> lock(allocations_mutex);
    allocations().erase(address);
    return finish(error);
  }
  *pointer = handle_of<void*>(address);
  return hipSuccess;
}

// Takes an allocation from the list, and says whose it was: false where there is none.
bool forget(const void* pointer, int* device) {
  const std::lock_guard<std::mutex> lock(allocations_mutex);
  const auto found = allocations().find(number(pointer));
  if (found == allocations().end()) return false;
  *device = found->second.device;
  allocations().erase(found);
  return true;
}

}  // namespace

// The start of every function: it fails where the environment asks for that.
#define ENTER()                                                                                   \
  do {                                                                                            \
    if (int asked = fake_hip::asked_failure("EMULATED_HIP_FAIL", __func__)) return finish(asked); \
  } while (0)

// And where it needs the emulator.
#define ENTER_BACKEND()                               \
  ENTER();                                            \
  const CallInFlight call_in_flight;                  \
  if (has_ended) return hipSuccess;                   \
  const EmulatedHipBackend* const backend = attached; \
  if (!backend) return finish(hipErrorNotInitialized)

extern "C" {

int emulated_hip_attach(const EmulatedHipBackend* backend) {
  if (backend && backend->size != sizeof(EmulatedHipBackend)) return 1;
  attached = backend;
  return 0;
}

void emulated_hip_end() {
  has_ended = true;
  while (calls_in_flight) usleep(1000);
}

const char* emulated_hip_arch(int device) {
  const ArchFacts* const arch = device_arch(device);
  return arch ? arch->name.data() : nullptr;
}

const char* hipGetErrorName(hipError_t error) {
  for (const ErrorText& known : kErrors) {
    if (known.error == error) return known.name;
  }
  return "hipErrorUnknown";
}

const char* hipGetErrorString(hipError_t error) {
  for (const ErrorText& known : kErrors) {
    if (known.error == error) return known.text;
  }
  return "unknown error";
}

hipError_t hipGetLastError() {
  const hipError_t error = last_error;
  last_error = hipSuccess;
  return error;
}

hipError_t hipInit(unsigned flags) {
  ENTER();
  return finish(flags == 0 ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipDriverGetVersion(int* version) {
  ENTER();
  if (!version) return finish(hipErrorInvalidValue);
  *version = HIP_VERSION;
  return hipSuccess;
}

hipError_t hipRuntimeGetVersion(int* version) { return hipDriverGetVersion(version); }

hipError_t hipGetDeviceCount(int* count) {
  ENTER();
  *count = static_cast<int>(devices().size());
  return *count ? hipSuccess : finish(hipErrorNoDevice);
}

hipError_t hipPeekAtLastError() { return last_error; }

hipError_t hipGetDevice(int* device) {
  ENTER();
  *device = current_device;
  return hipSuccess;
}

hipError_t hipSetDevice(int device) {
  ENTER();
  if (!device_arch(device)) return finish(hipErrorInvalidDevice);
  current_device = device;
  return hipSuccess;
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600* properties, int device) {
  ENTER();
  const ArchFacts* const arch = device_arch(device);
  if (!arch) return finish(hipErrorInvalidDevice);
  hipDeviceProp_tR0600 p = {};
  std::snprintf(p.name, sizeof(p.name), "%s", product_of(*arch).c_str());
  std::snprintf(p.gcnArchName, sizeof(p.gcnArchName), "%s:sramecc+:xnack-", arch->name.data());
  p.totalGlobalMem = memory();
  p.sharedMemPerBlock = p.sharedMemPerMultiprocessor = p.maxSharedMemoryPerMultiProcessor =
      static_cast<size_t>(arch->lds);
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = arch->wave_size;
  p.maxThreadsPerBlock = 1024;
  for (int axis = 0; axis < 3; ++axis) p.maxThreadsDim[axis] = 1024;
  p.maxGridSize[0] = 2147483647;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.clockRate = kClock;
  p.memoryClockRate = kMemoryClock;
  p.memoryBusWidth = 8192;
  p.l2CacheSize = 4 << 20;
  p.maxThreadsPerMultiProcessor = 2048;
  p.multiProcessorCount = arch->compute_units;
  // Of gfx942: 9 and 4; the last digit is the stepping.
  const std::string version(arch->name.substr(3, arch->name.size() - 4));
  p.major = std::stoi(version.substr(0, version.size() - 1));
  p.minor = std::stoi(version.substr(version.size() - 1), nullptr, 16);
  p.pciBusID = device + 1;
  p.concurrentKernels = 1;
  p.ECCEnabled = 1;
  p.asyncEngineCount = 8;
  *properties = p;
  return hipSuccess;
}

hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device) {
  ENTER();
  hipDeviceProp_tR0600 p;
  if (hipError_t error = hipGetDevicePropertiesR0600(&p, device)) return error;
  switch (attribute) {
    case hipDeviceAttributeMultiprocessorCount:
      *value = p.multiProcessorCount;
      break;
    case hipDeviceAttributeWarpSize:
      *value = p.warpSize;
      break;
    case hipDeviceAttributeMaxThreadsPerBlock:
      *value = p.maxThreadsPerBlock;
      break;
    case hipDeviceAttributeMaxSharedMemoryPerBlock:
      *value = static_cast<int>(p.sharedMemPerBlock);
      break;
    case hipDeviceAttributeComputeCapabilityMajor:
      *value = p.major;
      break;
    case hipDeviceAttributeComputeCapabilityMinor:
      *value = p.minor;
      break;
    case hipDeviceAttributeClockRate:
      *value = p.clockRate;
      break;
    case hipDeviceAttributeL2CacheSize:
      *value = p.l2CacheSize;
      break;
    case hipDeviceAttributeMaxThreadsPerMultiProcessor:
      *value = p.maxThreadsPerMultiProcessor;
      break;
    case hipDeviceAttributeMaxBlocksPerMultiProcessor:
      *value = kWorkgroupsPerUnit;
      break;
    case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor:
    case hipDeviceAttributeSharedMemPerBlockOptin:
      *value = static_cast<int>(p.sharedMemPerBlock);
      break;
    case hipDeviceAttributeMaxRegistersPerBlock:
    case hipDeviceAttributeMaxRegistersPerMultiprocessor:
      *value = p.regsPerBlock;
      break;
    case hipDeviceAttributeMaxGridDimX:
    case hipDeviceAttributeMaxGridDimY:
    case hipDeviceAttributeMaxGridDimZ:
      *value = p.maxGridSize[attribute - hipDeviceAttributeMaxGridDimX];
      break;
    case hipDeviceAttributeMaxBlockDimX:
    case hipDeviceAttributeMaxBlockDimY:
    case hipDeviceAttributeMaxBlockDimZ:
      *value = p.maxThreadsDim[attribute - hipDeviceAttributeMaxBlockDimX];
      break;
    case hipDeviceAttributeMemoryClockRate:
      *value = p.memoryClockRate;
      break;
    case hipDeviceAttributeMemoryBusWidth:
      *value = p.memoryBusWidth;
      break;
    case hipDeviceAttributeEccEnabled:
      *value = p.ECCEnabled;
      break;
    default:
      return finish(hipErrorNotSupported);
  }
  return hipSuccess;
}

hipError_t hipDeviceGet(hipDevice_t* device, int ordinal) {
  ENTER();
  if (!device || !device_arch(ordinal)) return finish(hipErrorInvalidDevice);
  *device = ordinal;
  return hipSuccess;
}

hipError_t hipDeviceGetName(char* name, int length, hipDevice_t device) {
  ENTER();
  const ArchFacts* const arch = device_arch(device);
  if (!name || length < 1 || !arch) return finish(hipErrorInvalidDevice);
  std::snprintf(name, length, "%s", product_of(*arch).c_str());
  return hipSuccess;
}

hipError_t hipDeviceGetPCIBusId(char* id, int length, int device) {
  ENTER();
  if (!id || length < 1 || !device_arch(device)) return finish(hipErrorInvalidDevice);
  std::snprintf(id, length, "0000:%02x:00.0", device + 1);
  return hipSuccess;
}

hipError_t hipDeviceTotalMem(size_t* bytes, hipDevice_t device) {
  ENTER();
  const ArchFacts* const arch = device_arch(device);
  if (!bytes || !arch) return finish(hipErrorInvalidDevice);
  *bytes = memory();
  return hipSuccess;
}

hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  ENTER();
  if (least) *least = 0;
  if (greatest) *greatest = 0;
  return hipSuccess;
}

hipError_t hipDeviceCanAccessPeer(int* can, int device, int peer) {
  ENTER();
  if (!can || !device_arch(device) || !device_arch(peer)) return finish(hipErrorInvalidDevice);
  *can = 0;
  return hipSuccess;
}

hipError_t hipMemGetInfo(size_t* free, size_t* total) {
  ENTER();
  const ArchFacts* const arch = device_arch(current_device);
  if (!arch) return finish(hipErrorInvalidDevice);
  const std::lock_guard<std::mutex> lock(allocations_mutex);
  const size_t used = memory_used(current_device);
  *total = memory();
  *free = *total > used ? *total - used : 0;
  return hipSuccess;
}

hipError_t hipMalloc(void** pointer, size_t bytes) {
  ENTER_BACKEND();
  return allocate(backend, pointer, bytes, current_device);
}

// Of the stream's device. The memory can be used from the call on, also by other streams.
hipError_t hipMallocAsync(void** pointer, size_t bytes, hipStream_t stream) {
  ENTER_BACKEND();
  int device = 0, is_blocking = 0;
  if (int error = backend->stream_info(current_device, number(stream), &device, &is_blocking)) {
    return finish(error);
  }
  return allocate(backend, pointer, bytes, device);
}

hipError_t hipFree(void* pointer) {
  ENTER_BACKEND();
  if (!pointer) return hipSuccess;
  int device;
  if (!forget(pointer, &device)) return finish(hipErrorInvalidValue);
  return finish(backend->release(device, number(pointer)));
}

// The memory is gone when the stream gets there: work that uses it later faults.
hipError_t hipFreeAsync(void* pointer, hipStream_t stream) {
  ENTER_BACKEND();
  if (!pointer) return hipSuccess;
  int device;
  if (!forget(pointer, &device)) return finish(hipErrorInvalidValue);
  return finish(backend->release_later(device, number(pointer), number(stream)));
}

hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind kind) {
  ENTER_BACKEND();
  return finish(backend->copy(current_device, number(to), number(from), bytes, kind, 0, 1));
}

hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                          hipStream_t stream) {
  ENTER_BACKEND();
  return finish(
      backend->copy(current_device, number(to), number(from), bytes, kind, number(stream), 0));
}

hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, size_t bytes, hipStream_t stream) {
  return hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToHost, stream);
}

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void* from, size_t bytes, hipStream_t stream) {
  return hipMemcpyAsync(to, from, bytes, hipMemcpyHostToDevice, stream);
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes,
                              hipStream_t stream) {
  return hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToDevice, stream);
}

hipError_t hipMemcpyDtoH(void* to, hipDeviceptr_t from, size_t bytes) {
  return hipMemcpy(to, from, bytes, hipMemcpyDeviceToHost);
}

hipError_t hipMemcpyHtoD(hipDeviceptr_t to, void* from, size_t bytes) {
  return hipMemcpy(to, from, bytes, hipMemcpyHostToDevice);
}

// Host memory that a device reads: here any memory of the host is copied from as it is.
hipError_t hipHostMalloc(void** pointer, size_t bytes, unsigned) {
  ENTER();
  if (!pointer) return finish(hipErrorInvalidValue);
  return posix_memalign(pointer, kPage, bytes) ? finish(hipErrorOutOfMemory) : hipSuccess;
}

hipError_t hipHostFree(void* pointer) {
  ENTER();
  std::free(pointer);
  return hipSuccess;
}

hipError_t hipHostRegister(void*, size_t, unsigned) {
  ENTER();
  return hipSuccess;
}

hipError_t hipHostUnregister(void*) {
  ENTER();
  return hipSuccess;
}

hipError_t hipPointerGetAttribute(void* data, hipPointer_attribute which, hipDeviceptr_t pointer) {
  ENTER();
  const std::lock_guard<std::mutex> lock(allocations_mutex);
  const auto next = allocations().upper_bound(number(pointer));
  if (!data || next == allocations().begin()) return finish(hipErrorInvalidValue);
  const auto& [address, allocation] = *std::prev(next);
  if (number(pointer) >= address + allocation.bytes) return finish(hipErrorInvalidValue);
  switch (which) {
    case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) = hipMemoryTypeDevice;
      break;
    case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = allocation.device;
      break;
    case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<uint64_t*>(data) = address;
      break;
    case HIP_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(data) = allocation.bytes;
      break;
    default:
      return finish(hipErrorNotSupported);
  }
  return hipSuccess;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer) {
  ENTER();
  int device = 0;
  if (!attributes) return finish(hipErrorInvalidValue);
  if (hipError_t error = hipPointerGetAttribute(&device, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                                const_cast<void*>(pointer))) {
    return error;
  }
  *attributes = {};
  attributes->type = hipMemoryTypeDevice;
  attributes->device = device;
  attributes->devicePointer = const_cast<void*>(pointer);
  return hipSuccess;
}

hipError_t hipDrvPointerGetAttributes(unsigned count, hipPointer_attribute* which, void** data,
                                      hipDeviceptr_t pointer) {
  for (unsigned i = 0; i < count; ++i) {
    if (hipError_t error = hipPointerGetAttribute(data[i], which[i], pointer)) return error;
  }
  return hipSuccess;
}

hipError_t hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t stream) {
  ENTER_BACKEND();
  return finish(
      backend->fill(current_device, number(to), bytes, value, 1, bytes, 1, number(stream)));
}

hipError_t hipMemset(void* to, int value, size_t bytes) {
  ENTER();
  return hipMemsetAsync(to, value, bytes, nullptr);
}

hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t bytes,
                            hipStream_t stream) {
  return hipMemsetAsync(to, value, bytes, stream);
}

hipError_t hipMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t rows,
                            hipStream_t stream) {
  ENTER_BACKEND();
  if (pitch < width) return finish(hipErrorInvalidValue);
  return finish(
      backend->fill(current_device, number(to), pitch, value, 1, width, rows, number(stream)));
}

hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream) {
  ENTER_BACKEND();
  return finish(
      backend->fill(current_device, number(to), count * 4, value, 4, count, 1, number(stream)));
}

hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  ENTER_BACKEND();
  if (!module || !image) return finish(hipErrorInvalidValue);
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != kMachineAmdGpu ||
      header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff > kGiB) {
    return finish(hipErrorInvalidImage);
  }
  uint64_t loaded = 0;
  const int error = backend->load(current_device, image,
                                  AITER_ATTN_NAMESPACE::testing::elf_image_size(image), &loaded);
  *module = handle_of<hipModule_t>(loaded);
  return finish(error);
}

hipError_t hipModuleUnload(hipModule_t module) {
  ENTER_BACKEND();
  return finish(backend->unload(current_device, number(module)));
}

hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name) {
  ENTER_BACKEND();
  if (!function || !name) return finish(hipErrorInvalidValue);
  uint64_t found = 0;
  const int error = backend->function(number(module), name, &found);
  *function = handle_of<hipFunction_t>(found);
  return finish(error);
}

hipError_t hipModuleGetGlobal(hipDeviceptr_t* address, size_t* bytes, hipModule_t module,
                              const char* name) {
  ENTER_BACKEND();
  if (!name) return finish(hipErrorInvalidValue);
  uint64_t found = 0, size = 0;
  const int error = backend->variable(current_device, number(module), name, &found, &size);
  if (error) return finish(error);
  if (address) *address = handle_of<hipDeviceptr_t>(found);
  if (bytes) *bytes = size;
  return hipSuccess;
}

hipError_t hipFuncGetAttribute(int* value, hipFunction_attribute attribute,
                               hipFunction_t function) {
  ENTER_BACKEND();
  if (!value) return finish(hipErrorInvalidValue);
  uint32_t registers = 0, lds = 0, scratch = 0, threads = 0;
  if (int error = backend->resources(number(function), &registers, &lds, &scratch, &threads)) {
    return finish(error);
  }
  switch (attribute) {
    case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(threads);
      break;
    case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(lds);
      break;
    case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(scratch);
      break;
    case HIP_FUNC_ATTRIBUTE_NUM_REGS:
      *value = static_cast<int>(registers);
      break;
    default:
      return finish(hipErrorNotSupported);
  }
  return hipSuccess;
}

// By threads and dynamic LDS: registers and static LDS are not read from the code object.
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* workgroups,
                                                              hipFunction_t function, int threads,
                                                              size_t dynamic_lds) {
  ENTER();
  if (!workgroups || !function || threads < 1 || threads > 1024) {
    return finish(hipErrorInvalidValue);
  }
  const size_t lds = device_arch(current_device)->lds;
  if (dynamic_lds > lds) return finish(hipErrorInvalidValue);
  *workgroups = 2048 / threads;
  if (dynamic_lds) *workgroups = std::min(*workgroups, static_cast<int>(lds / dynamic_lds));
  return finish(hipSuccess);
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y,
                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                 unsigned block_z, unsigned dynamic_lds, hipStream_t stream,
                                 void** params, void** extra) {
  ENTER_BACKEND();
  if (params && extra) return finish(hipErrorInvalidValue);
  const void* kernarg = nullptr;
  size_t bytes = 0;
  std::vector<char> packed;
  if (params) {
    uint32_t count = kMostArguments, offsets[kMostArguments], sizes[kMostArguments];
    if (int error = backend->arguments(number(function), &count, offsets, sizes)) {
      return finish(error);
    }
    for (uint32_t i = 0; i < count; ++i) {
      packed.resize(std::max<size_t>(packed.size(), offsets[i] + sizes[i]));
      std::memcpy(packed.data() + offsets[i], params[i], sizes[i]);
    }
    kernarg = packed.data();
    bytes = packed.size();
  }
  for (void** at = extra; at && *at != HIP_LAUNCH_PARAM_END; at += 2) {
    if (*at == HIP_LAUNCH_PARAM_BUFFER_POINTER) {
      kernarg = at[1];
    } else if (*at == HIP_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = *static_cast<const size_t*>(at[1]);
    } else {
      return finish(hipErrorInvalidValue);
    }
  }
  if (bytes && !kernarg) return finish(hipErrorInvalidValue);
  const uint32_t grid[3] = {grid_x, grid_y, grid_z};
  const uint32_t block[3] = {block_x, block_y, block_z};
  uint64_t threads = 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (grid[axis] == 0 || block[axis] == 0 || block[axis] > 1024 ||
        uint64_t{grid[axis]} * block[axis] > UINT32_MAX) {
      return finish(hipErrorInvalidConfiguration);
    }
    threads *= block[axis];
  }
  if (threads > 1024) return finish(hipErrorInvalidConfiguration);
  return finish(backend->launch(current_device, number(function), grid, block, dynamic_lds,
                                number(stream), kernarg, bytes));
}

hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags) {
  ENTER_BACKEND();
  if (!stream || (flags & ~hipStreamNonBlocking)) return finish(hipErrorInvalidValue);
  uint64_t made = 0;
  const int error = backend->create_stream(current_device, !(flags & hipStreamNonBlocking), &made);
  *stream = handle_of<hipStream_t>(made);
  return finish(error);
}

hipError_t hipStreamCreate(hipStream_t* stream) {
  ENTER();
  return hipStreamCreateWithFlags(stream, hipStreamDefault);
}

hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int) {
  return hipStreamCreateWithFlags(stream, flags);
}

hipError_t hipStreamGetPriority(hipStream_t, int* priority) {
  ENTER();
  *priority = 0;
  return hipSuccess;
}

hipError_t hipStreamGetFlags(hipStream_t stream, unsigned* flags) {
  ENTER_BACKEND();
  int device = 0, is_blocking = 0;
  if (int error = backend->stream_info(current_device, number(stream), &device, &is_blocking)) {
    return finish(error);
  }
  *flags = is_blocking ? hipStreamDefault : hipStreamNonBlocking;
  return hipSuccess;
}

// There are no graphs that work could be captured into.
hipError_t hipStreamIsCapturing(hipStream_t, hipStreamCaptureStatus* status) {
  ENTER();
  if (!status) return finish(hipErrorInvalidValue);
  *status = hipStreamCaptureStatusNone;
  return hipSuccess;
}

// As HIP has it: a device, not an error.
int hipGetStreamDeviceId(hipStream_t stream) {
  const CallInFlight call_in_flight;
  const EmulatedHipBackend* const backend = attached;
  int device = current_device, is_blocking = 0;
  if (backend && !has_ended) {
    backend->stream_info(current_device, number(stream), &device, &is_blocking);
  }
  return device;
}

hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void* data) {
  ENTER_BACKEND();
  if (!function) return finish(hipErrorInvalidValue);
  return finish(backend->host_function(current_device, number(stream),
                                       reinterpret_cast<uint64_t>(function), number(data)));
}

hipError_t hipStreamDestroy(hipStream_t stream) {
  ENTER_BACKEND();
  return finish(backend->destroy_stream(current_device, number(stream)));
}

hipError_t hipStreamSynchronize(hipStream_t stream) {
  ENTER_BACKEND();
  return finish(backend->wait_stream(current_device, number(stream)));
}

hipError_t hipStreamQuery(hipStream_t stream) {
  ENTER_BACKEND();
  return finish(backend->query_stream(current_device, number(stream)));
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned) {
  ENTER_BACKEND();
  return finish(backend->stream_waits(current_device, number(stream), number(event)));
}

hipError_t hipDeviceSynchronize() {
  ENTER_BACKEND();
  return finish(backend->wait_device(current_device));
}

hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned) {
  ENTER_BACKEND();
  if (!event) return finish(hipErrorInvalidValue);
  uint64_t made = 0;
  const int error = backend->create_event(current_device, &made);
  *event = handle_of<hipEvent_t>(made);
  return finish(error);
}

hipError_t hipEventCreate(hipEvent_t* event) {
  ENTER();
  return hipEventCreateWithFlags(event, hipEventDefault);
}

hipError_t hipEventDestroy(hipEvent_t event) {
  ENTER_BACKEND();
  return finish(backend->destroy_event(number(event)));
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  ENTER_BACKEND();
  return finish(backend->record_event(current_device, number(event), number(stream)));
}

hipError_t hipEventSynchronize(hipEvent_t event) {
  ENTER_BACKEND();
  return finish(backend->wait_event(number(event)));
}

hipError_t hipEventQuery(hipEvent_t event) {
  ENTER_BACKEND();
  return finish(backend->query_event(number(event)));
}

hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
  ENTER_BACKEND();
  return finish(backend->elapsed(number(start), number(stop), milliseconds));
}

}  // extern "C"
