// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A stand-in for libamdhip64: it records all calls. Device memory is host memory;
// fills are done, kernels are not run. It loads ELF files, and the text that the stand-in for
// hipRTC makes. Load it by AITER_ATTN_HIP_LIBRARY.
//
// Environment, read at every call:
//   AITER_RECORDING_HIP_ARCHS  one name per device; default "gfx942:sramecc+:xnack-"
//   AITER_RECORDING_HIP_VERSION  of hipRuntimeGetVersion; default 60443480, HIP 6.4
//   AITER_RECORDING_HIP_FAIL   "hipModuleLoadData=2,...": the function returns the error
//   AITER_RECORDING_HIP_ERROR  what hipGetErrorName and hipGetErrorString say of every error
//   AITER_RECORDING_HIP_LOG    a file to which every recorded call is appended as a line of JSON
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

enum RecordedKind {
  kRecordedSetDevice = 1,
  kRecordedLoad = 2,
  kRecordedLaunch = 3,
  kRecordedFill = 4,
};

// One call. Fields that its kind does not have are zero. Pointers live until recording_hip_reset.
struct RecordedCall {
  int kind;
  int device;                 // current at the call; kRecordedSetDevice: the new one
  const char* module_sha256;  // load, launch: of the image's bytes
  size_t module_size;
  const unsigned char* image;  // load, launch
  const char* symbol;          // launch
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  uint32_t most_shared_bytes;  // CUDA: that the function may have
  uint32_t wide_clusters;      // CUDA: it may have more than 8 CTAs in a cluster
  uint32_t waits_itself;       // CUDA: it may start before the launch ahead of it has ended
  const unsigned char* kernarg;
  size_t kernarg_size;
  void* stream;  // launch, fill
  void* data;    // fill: rows of width bytes, pitch bytes apart, of one word
  size_t pitch;
  size_t width;
  size_t rows;
  uint32_t value;
};

// The calls since the last reset, in order.
const RecordedCall* recording_hip_calls(size_t* count);
void recording_hip_reset(void);
// Blocks of hipMallocAsync that were not freed.
size_t recording_hip_living(void);
}
