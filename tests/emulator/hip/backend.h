// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The requests of the emulated HIP runtime to the emulator. The library knows errors, devices,
// addresses and arguments; queues, memory contents and kernels are the backend's (emulated_hip.py).
#pragma once

#include <cstdint>

// Streams, events, modules and functions are numbers that the backend gives out, never 0; stream 0
// is a device's default stream. Every function returns a hipError_t, and may be called from any
// thread. `device` is the current one.
struct EmulatedHipBackend {
  uint32_t size;  // sizeof(EmulatedHipBackend) as the backend was written for

  // A new allocation at an address that is the device's alone, and its end. Freeing waits for the
  // device, or is work of a stream.
  int (*allocate)(int device, uint64_t address, uint64_t bytes);
  int (*release)(int device, uint64_t address);
  int (*release_later)(int device, uint64_t address, uint64_t stream);

  // `kind` is a hipMemcpyKind. Host memory is read before a copy returns, and written before a
  // copy from a device returns.
  int (*copy)(int device, uint64_t to, uint64_t from, uint64_t bytes, int kind, uint64_t stream,
              int wait);
  // `rows` rows, `pitch` bytes apart, of `items` items whose bytes are the low `item_bytes` of
  // `value`.
  int (*fill)(int device, uint64_t to, uint64_t pitch, uint32_t value, uint32_t item_bytes,
              uint64_t items, uint64_t rows, uint64_t stream);

  int (*load)(int device, const void* image, uint64_t bytes, uint64_t* module);
  int (*unload)(int device, uint64_t module);
  int (*function)(uint64_t module, const char* symbol, uint64_t* function);
  // Where a kernel's explicit arguments lie in its argument buffer: `count` has the room of the
  // arrays, and then how many there are.
  int (*arguments)(uint64_t function, uint32_t* count, uint32_t* offsets, uint32_t* sizes);
  int (*resources)(uint64_t function, uint32_t* registers, uint32_t* lds, uint32_t* scratch,
                   uint32_t* threads);
  // The address and size of a variable of a module.
  int (*variable)(int device, uint64_t module, const char* symbol, uint64_t* address,
                  uint64_t* bytes);
  int (*launch)(int device, uint64_t function, const uint32_t* grid, const uint32_t* block,
                uint32_t dynamic_lds, uint64_t stream, const void* kernarg, uint64_t bytes);

  int (*create_stream)(int device, int blocking, uint64_t* stream);
  int (*destroy_stream)(int device, uint64_t stream);
  int (*wait_stream)(int device, uint64_t stream);
  int (*query_stream)(int device, uint64_t stream);
  // Of a stream of any device; of stream 0, the current device's.
  int (*stream_info)(int current, uint64_t stream, int* device, int* is_blocking);
  int (*wait_device)(int device);
  // Calls action(data), when the stream gets there. No host thread waits for a stream that tells
  // when it is done: the stream runs up to it.
  int (*host_function)(int device, uint64_t stream, uint64_t action, uint64_t data);

  int (*create_event)(int device, uint64_t* event);
  int (*destroy_event)(uint64_t event);
  int (*record_event)(int device, uint64_t event, uint64_t stream);
  int (*stream_waits)(int device, uint64_t stream, uint64_t event);
  int (*wait_event)(uint64_t event);
  int (*query_event)(uint64_t event);
  int (*elapsed)(uint64_t start, uint64_t stop, float* milliseconds);
};

// Attaches the backend, which must outlive every call; null detaches it. Returns 0, or 1 where
// `size` is another.
extern "C" int emulated_hip_attach(const EmulatedHipBackend* backend);

// The arch of a device, "gfx942"; null where there is no such device.
extern "C" const char* emulated_hip_arch(int device);

// For a process that tears down HIP's users after Python, when the emulator cannot be called: waits
// until no call is in the backend, and from then on every call succeeds and does nothing. Python's
// lock must be free meanwhile.
extern "C" void emulated_hip_end();
