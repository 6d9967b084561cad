// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The C ABI: reads the caller's structs, validates, and hands over to the CPU reference or the GPU.
// Nothing is thrown from here.
#include "aiter/attn.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>

#include "aiter/abi.h"
#include "aiter/dispatch.h"
#include "aiter/driver/driver.h"
#include "aiter/error.h"
#include "aiter/explain.h"
#include "aiter/launch.h"
#include "aiter/loader.h"
#include "aiter/reference/reference.h"
#include "aiter/store/store.h"
#include "aiter/validate.h"

namespace aiter_attn {
namespace {

// What the thread's last call left behind. The message is a pointer of its own so that running out
// of memory can still be reported.
struct ThreadState {
  const char* message = "";
  std::string message_text;
  std::string answer;
};

ThreadState& thread_state() {
  thread_local ThreadState state;
  return state;
}

void set_message(const char* text) noexcept {
  ThreadState& state = thread_state();
  try {
    state.message_text = text;
    state.message = state.message_text.c_str();
  } catch (...) {
    state.message = "out of memory while reporting an error";
  }
}

// Runs body; what it throws becomes a status and the thread's message.
template <typename Body>
attn_status guarded(Body&& body) noexcept {
  thread_state().message = "";
  try {
    body();
    return ATTN_OK;
  } catch (const Error& error) {
    set_message(error.what());
    return error.status();
  } catch (const std::bad_alloc&) {
    set_message("out of host memory");
    return ATTN_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    set_message(error.what());
  } catch (...) {
    set_message("unknown error");
  }
  return ATTN_ERROR_INTERNAL;
}

attn_fwd_args read(const attn_fwd_args* args) {
  return read_struct(args, "attn_fwd_args", kFwdArgsSizeV1);
}
attn_bwd_args read(const attn_bwd_args* args) {
  return read_struct(args, "attn_bwd_args", kBwdArgsSizeV1);
}

Loader& rocm_loader(Driver& driver) {
  // Never destroyed, as the modules in it are not.
  static Loader* const loader = new Loader(driver, library_store());
  return *loader;
}

attn_status run_fwd(const attn_fwd_args* given, Mode mode) {
  return guarded([&] {
    const attn_fwd_args args = read(given);
    validate(args, mode, Pointers::kRequired);
    if (args.problem.device_type == ATTN_DEVICE_CPU) {
      reference_fwd(args, mode);
    } else {
      Driver& driver = driver_for(ATTN_DEVICE_ROCM);
      launch_fwd(args, mode, driver, rocm_loader(driver));
    }
  });
}

attn_status run_bwd(const attn_bwd_args* given, Mode mode) {
  return guarded([&] {
    const attn_bwd_args args = read(given);
    validate(args, mode, Pointers::kRequired);
    if (args.problem.device_type == ATTN_DEVICE_CPU) {
      reference_bwd(args, mode);
    } else {
      Driver& driver = driver_for(ATTN_DEVICE_ROCM);
      launch_bwd(args, mode, driver, rocm_loader(driver));
    }
  });
}

template <typename Args>
attn_status explain(const Args* given, const char* arch, const char** text,
                    std::string (*explain_plan)(const LaunchTable&, const Request&)) {
  return guarded([&] {
    if (!text) fail(ATTN_ERROR_INVALID_ARGUMENT, "text is NULL: pass where the answer goes");
    *text = nullptr;
    const Args args = read(given);
    const Mode mode = implied_mode(args.problem);
    validate(args, mode, Pointers::kIgnored);
    std::string& answer = thread_state().answer;
    if (args.problem.device_type == ATTN_DEVICE_CPU) {
      answer = "CPU reference: serves every valid problem\n";
    } else {
      const std::string own =
          arch ? arch : driver_for(ATTN_DEVICE_ROCM).arch(args.problem.device_id);
      answer = explain_plan(launch_table(), make_request(args, mode, own));
    }
    *text = answer.c_str();
  });
}

std::string describe_cpu() {
  return concat("CPU reference, ", std::max(1u, std::thread::hardware_concurrency()), " thread(s)");
}

struct Row {
  const Instance& instance;
  const CodeObject& object;
};

// The index-th row of instance x arch.
Row find_row(uint32_t index) {
  const LaunchTable& table = launch_table();
  uint32_t rest = index;
  for (uint32_t i = 0; i < table.instance_count; ++i) {
    const Instance& instance = table.instances[i];
    if (rest < instance.code_object_count) return {instance, instance.code_objects[rest]};
    rest -= instance.code_object_count;
  }
  fail(ATTN_ERROR_INVALID_ARGUMENT, "index is ", index, ", but this build has ", index - rest,
       " kernels: pass less than attn_kernel_count()");
}

}  // namespace
}  // namespace aiter_attn

using namespace aiter_attn;

extern "C" {

uint32_t attn_abi_version(void) { return ATTN_ABI_VERSION; }

const char* attn_version(void) { return AITER_ATTN_VERSION; }

const char* attn_last_error(void) { return thread_state().message; }

attn_status attn_fwd(const attn_fwd_args* args) { return run_fwd(args, Mode::kBatch); }

attn_status attn_varlen_fwd(const attn_fwd_args* args) { return run_fwd(args, Mode::kGroup); }

attn_status attn_bwd(const attn_bwd_args* args) { return run_bwd(args, Mode::kBatch); }

attn_status attn_varlen_bwd(const attn_bwd_args* args) { return run_bwd(args, Mode::kGroup); }

attn_status attn_bwd_workspace_size(const attn_bwd_args* given, uint64_t* bytes) {
  return guarded([&] {
    if (!bytes) fail(ATTN_ERROR_INVALID_ARGUMENT, "bytes is NULL: pass where the size goes");
    *bytes = 0;
    const attn_bwd_args args = read(given);
    const Mode mode = implied_mode(args.problem);
    validate(args, mode, Pointers::kIgnored);
    if (args.problem.device_type != ATTN_DEVICE_CPU) *bytes = bwd_workspace_size(args, mode);
  });
}

attn_status attn_explain_fwd(const attn_fwd_args* args, const char* arch, const char** text) {
  return explain(args, arch, text, explain_fwd);
}

attn_status attn_explain_bwd(const attn_bwd_args* args, const char* arch, const char** text) {
  return explain(args, arch, text, explain_bwd);
}

uint32_t attn_kernel_count(void) {
  const LaunchTable& table = launch_table();
  uint32_t count = 0;
  for (uint32_t i = 0; i < table.instance_count; ++i) count += table.instances[i].code_object_count;
  return count;
}

attn_status attn_kernel_info(uint32_t index, attn_kernel_info_t* info) {
  return guarded([&] {
    check_struct(info, "attn_kernel_info_t", kKernelInfoSizeV1);
    const Row row = find_row(index);
    attn_kernel_info_t answer = {};
    answer.struct_size = info->struct_size;
    answer.name = row.instance.name;
    answer.arch = row.object.arch;
    answer.key = row.object.key;
    answer.symbol = row.instance.symbol;
    answer.kind = kind_name(row.instance.traits.kind);
    answer.code_object_size = row.object.size;
    answer.embedded_size = row.object.packed_size;
    std::memcpy(info, &answer, std::min<size_t>(info->struct_size, sizeof(answer)));
  });
}

attn_status attn_code_object(const char* key, void** data, uint64_t* size) {
  return guarded([&] {
    if (!key) fail(ATTN_ERROR_INVALID_ARGUMENT, "key is NULL: pass a key of attn_kernel_info");
    if (!data) fail(ATTN_ERROR_INVALID_ARGUMENT, "data is NULL: pass where the bytes go");
    if (!size) fail(ATTN_ERROR_INVALID_ARGUMENT, "size is NULL: pass where the size goes");
    *data = nullptr;
    *size = 0;
    const Bytes bytes = library_store().get(key);
    void* copy = std::malloc(std::max<size_t>(bytes.size(), 1));
    if (!copy) throw std::bad_alloc();
    std::copy(bytes.begin(), bytes.end(), static_cast<unsigned char*>(copy));
    *data = copy;
    *size = bytes.size();
  });
}

void attn_code_object_free(void* data) { std::free(data); }

attn_status attn_driver_info(int32_t device_type, const char** text) {
  return guarded([&] {
    if (!text) fail(ATTN_ERROR_INVALID_ARGUMENT, "text is NULL: pass where the answer goes");
    *text = nullptr;
    std::string& answer = thread_state().answer;
    if (device_type == ATTN_DEVICE_CPU) {
      answer = describe_cpu();
    } else if (device_type == ATTN_DEVICE_ROCM) {
      answer = driver_for(ATTN_DEVICE_ROCM).describe();
    } else {
      fail(ATTN_ERROR_INVALID_ARGUMENT, "device_type is ", device_type, ", but must be ",
           static_cast<int>(ATTN_DEVICE_CPU), " (CPU) or ", static_cast<int>(ATTN_DEVICE_ROCM),
           " (ROCm)");
    }
    *text = answer.c_str();
  });
}

}  // extern "C"
