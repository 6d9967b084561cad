// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The library's calls of a GPU runtime. Nothing here is HIP's or CUDA's: each is an
// implementation. Words are HIP's: CUDA calls a workgroup a CTA and its LDS shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace AITER_ATTN_NAMESPACE::runtime {

using Stream = void*;
using Module = void*;
using Function = void*;

// The grid, memory and arguments of a launch.
struct KernelLaunch {
  uint32_t grid[3];            // in workgroups
  uint32_t block[3];           // in work-items
  uint32_t dynamic_lds;        // bytes of workgroup memory beyond the kernel's own
  const void* args = nullptr;  // as the kernel lays them out
  size_t args_size = 0;
  // The kernel waits by itself for the one queued before it, and may start ahead of its end.
  bool waits_itself = false;
};

// The limits of a device.
struct DeviceLimits {
  uint32_t multiprocessors;
  uint32_t lds;  // bytes of workgroup memory that one workgroup can have
};

// The resources of a device that a kernel's workgroups take.
struct Residency {
  uint32_t threads;      // of a workgroup
  uint32_t cluster;      // workgroups that run at the same time; 1: each for itself
  uint32_t dynamic_lds;  // as in KernelLaunch
};

// The context that was current for a thread before Driver::enter.
struct BeforeEntry {
  bool changed;
  void* context;
};

// A GPU runtime. Every member may throw Status::kDriver or Status::kOutOfMemory with a
// message that names the runtime's call, and may be called from several threads. Work is queued on
// a stream and not waited for; modules, functions and streams belong to the device that is current.
class Driver {
 public:
  virtual ~Driver() = default;

  // One line: the runtime's file and its devices.
  virtual std::string describe() = 0;
  virtual int device_count() = 0;
  // "gfx942", "sm_90": the name that code objects are built for, without feature suffixes. Throws
  // Status::kInvalidArgument where there is no such device, as limits and enter do.
  virtual std::string arch(int device) = 0;
  virtual DeviceLimits limits(int device) = 0;

  // Makes the device current for the calling thread, until leave gets the answer.
  virtual BeforeEntry enter(int device) = 0;
  virtual void leave(const BeforeEntry& before) = 0;

  // The image must stay valid as long as the module.
  virtual Module load(const void* image) = 0;
  virtual Function function(Module module, const char* symbol) = 0;
  // Lets the function be launched like that from now on, and tells how many of its clusters the
  // current device holds at a time; 0: none fits.
  virtual uint32_t make_resident(Function function, const char* symbol,
                                 const Residency& residency) = 0;
  // Throws Status::kInvalidArgument where the grid is greater than the runtime takes.
  virtual void launch(Function function, const char* symbol, const KernelLaunch& launch,
                      Stream stream) = 0;

  // rows rows of width bytes, pitch bytes apart, become zero.
  virtual void zero_rows(void* data, size_t pitch, size_t width, size_t rows, Stream stream) = 0;
  // count 32-bit words become value.
  virtual void fill_words(void* data, uint32_t value, size_t count, Stream stream) = 0;
};

// Makes a device current and, at the end of the scope, the one that was current before.
class DeviceScope {
 public:
  DeviceScope(Driver& driver, int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Driver& driver_;
  const BeforeEntry before_;
};

// The driver of a device type (DLPack's DLDeviceType), opened at the first use. Throws
// Status::kDriver with the reason where it cannot be had; the next call tries again. Where a parent
// process had opened it before it forked, it cannot be had for good.
Driver& driver_for(int32_t device_type);

}  // namespace AITER_ATTN_NAMESPACE::runtime
