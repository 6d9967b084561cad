// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The C ABI: has the caller's structs read by the pass that they are for, and hands the problem
// over to the pass's computation on the CPU, or to dispatch and launch. Nothing is thrown from
// here.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "aiter/attention/code_object.h"
#include "aiter/attention/dispatch.h"
#include "aiter/attention/explain.h"
#include "aiter/attention/kernel_list.h"
#include "aiter/attention/launch.h"
#include "aiter/attention/passes/passes.h"
#include "aiter/attention/preference.h"
#include "aiter/attention/problem/error.h"
#include "aiter/attention/problem/memory.h"
#include "aiter/attn.h"
#include "aiter/runtime/call.h"
#include "aiter/runtime/driver/driver.h"
#include "aiter/runtime/interrupt.h"
#include "aiter/runtime/library_loader.h"
#include "aiter/runtime/library_store.h"
#include "aiter/runtime/text.h"
#include "aiter/runtime/warm_up.h"
#include "aiter/status.h"
#include "kernels/archs/archs.h"
#include "kernels/launch_table/launch_table.h"

ATTN_ABI_STRUCT(attn_kernel_info_t, 120);

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using kernels::launch_table;
using kernels::LaunchTable;
using runtime::check_struct;
using runtime::read_struct;
using runtime::require_place;
using runtime::write_struct;

template <typename Body>
attn_status guarded(Body&& body) noexcept {
  return c_status(runtime::guarded(std::forward<Body>(body)));
}

// Answers a call with a text that lives until the thread's next one.
template <typename Body>
attn_status answer_with_text(const char** text, Body&& body) noexcept {
  return guarded([&] {
    require_place(text, "text", "answer");
    *text = nullptr;
    std::string& answer = runtime::thread_answer();
    answer = body();
    *text = answer.c_str();
  });
}

// A problem of which all is valid.
template <typename Args>
Problem checked(const Args* given, Pointers pointers) {
  Problem p = read(given, pointers);
  if (p.device_type != ATTN_DEVICE_CPU) p.preference = preferred_kernels(p.kernels);
  p.most_parts = p.pass->most_parts(launch_table(), p);
  validate_memory(p, pointers);
  return p;
}

// Of the passes of a call, in the order in which they are computed.
template <typename Args>
std::vector<Problem> problems_of(const Args* given, Pointers pointers) {
  return {checked(given, pointers)};
}

template <>
std::vector<Problem> problems_of(const attn_kvcache_fwd_args* given, Pointers pointers) {
  const attn_kvcache_fwd_args args = read_struct(given);
  if (!args.append) return {checked(given, pointers)};
  // First: it has the lengths that the caller counts from.
  const Problem append = checked(args.append, pointers);
  const Problem attention = checked(given, pointers);
  if (read_struct(args.append).problem != args.problem) {
    fail(Status::kInvalidArgument, Field("append.problem"),
         " is another than the call's problem: pass the same pointer");
  }
  if (pointers == Pointers::kRequired) validate_ahead(append, attention);
  return {append, attention};
}

// Of an arch, whose kernels compute with one format of fp8. Dispatch refuses an arch without.
Request request_for(const Problem& p, std::string_view arch, uint32_t compute_units) {
  const kernels::ArchFacts* const facts = kernels::find_arch(arch);
  const bool ocp = facts && facts->fp8 == kernels::ArchFp8::kE4m3;
  const int32_t own = ocp ? ATTN_DTYPE_FP8_E4M3 : ATTN_DTYPE_FP8_E4M3_FNUZ;
  if (facts && facts->fp8 != kernels::ArchFp8::kNone && is_fp8(p.dtype) && p.dtype != own) {
    fail(Status::kUnsupported, Field("dtype"), " is ", p.dtype, " (fp8 e4m3", ocp ? " fnuz" : "",
         "), but kernels for ", arch, " compute with ", own, " (fp8 e4m3", ocp ? "" : " fnuz",
         "): quantise to that");
  }
  return make_request(p, arch, compute_units);
}

// Dispatch's answer, complete. Throws kUnsupported where there is none.
Plan complete_plan(const Request& request) {
  const Plan plan = dispatch(launch_table(), request);
  if (!plan.is_complete()) {
    fail(Status::kUnsupported, explain_unserved(launch_table(), request, plan));
  }
  return plan;
}

void compute_on_gpu(const std::vector<Problem>& problems) {
  runtime::Driver& driver = runtime::driver_for(ATTN_DEVICE_ROCM);
  std::string arch;  // asked for where a kernel is
  uint32_t compute_units = 0;
  std::vector<Plan> plans;
  for (const Problem& p : problems) {
    Plan& plan = plans.emplace_back();
    if (!p.pass->has_work(p)) continue;
    if (arch.empty()) {
      arch = driver.arch(p.device_id);
      compute_units = driver.limits(p.device_id).multiprocessors;
    }
    plan = complete_plan(request_for(p, arch, compute_units));
    require_alignment(launch_table(), p, plan);
  }
  for (size_t i = 0; i < problems.size(); ++i) {
    const Problem& p = problems[i];
    if (p.pass->has_work(p)) {
      launch(launch_table(), p, plans[i], launch_table().find_arch(arch), driver,
             runtime::library_loader());
    } else {
      fill_outputs(p, driver);
    }
  }
}

// Nothing is written before all of the call's passes are known to be served.
template <typename Args>
attn_status run(const Args* given) {
  return guarded([&] {
    const std::vector<Problem> problems = problems_of(given, Pointers::kRequired);
    if (problems[0].device_type != ATTN_DEVICE_CPU) return compute_on_gpu(problems);
    for (const Problem& p : problems) p.pass->compute(p);
  });
}

struct Target {
  std::string arch;
  uint32_t compute_units;
};

// For planning: the arch that the caller names, with the compute units of its largest product, or
// else the device's own.
Target target_for(const Problem& problem, const char* arch) {
  if (arch) {
    const kernels::ArchFacts* const facts = kernels::find_arch(arch);
    return {runtime::utf8(arch), static_cast<uint32_t>(facts ? facts->compute_units : 0)};
  }
  runtime::Driver& driver = runtime::driver_for(ATTN_DEVICE_ROCM);
  return {driver.arch(problem.device_id), driver.limits(problem.device_id).multiprocessors};
}

// The facts of the code object with a key: by the launch table, or by the key alone, as of
// norms' kernels.
runtime::CodeObjectRef ref_of(const char* key) {
  if (!key) fail(Status::kInvalidArgument, "key is NULL: pass a key of attn_kernel_info");
  const std::optional<runtime::Digest> wanted = runtime::parse_hex(key);
  if (!wanted) {
    fail(Status::kUnsupported, "no code object has the key '", runtime::utf8(key),
         "': a key is 64 hex digits; attn_kernel_info lists those of attention's kernels");
  }
  const KernelList& kernels = kernel_list();
  const kernels::CodeObjectRow* object = kernels.find(*wanted);
  if (object) return code_object_ref(launch_table(), *object);
  // It may be that of a plain compile, which the compile kit makes, or a compiler's own.
  const runtime::Store& store = runtime::library_store();
  for (uint32_t i = 0; i < kernels.size(); ++i) {
    const runtime::CodeObjectRef ref = code_object_ref(launch_table(), kernels.object(i));
    std::vector<runtime::CodeObjectRef> others = store.own(ref);
    if (ref.plain) others.push_back(ref.plain());
    for (runtime::CodeObjectRef& other : others) {
      if (other.key == *wanted) return std::move(other);
    }
  }
  return {*wanted, {}};
}

// The code objects of kernels by their indices.
std::vector<runtime::CodeObjectRef> refs_of(const uint32_t* kernels, uint32_t count) {
  if (count != 0) require_place(kernels, "kernels", "list");
  std::vector<runtime::CodeObjectRef> refs;
  for (uint32_t i = 0; i < count; ++i) {
    if (kernels[i] >= kernel_list().size()) {
      fail(Status::kInvalidArgument, Field("kernels"), "[", i, "] is ", kernels[i],
           ", but this build has ", kernel_list().size(),
           " kernels: pass indices of attn_plan_* or less than attn_kernel_count()");
    }
    refs.push_back(code_object_ref(launch_table(), kernel_list().object(kernels[i])));
  }
  return refs;
}

template <typename Args>
attn_status plan(const Args* given, const char* arch, uint32_t* kernels, uint32_t* count) {
  return guarded([&] {
    require_place(count, "count", "number of kernels");
    const uint32_t room = kernels ? *count : 0;
    *count = 0;
    std::vector<uint32_t> planned;
    for (const Problem& problem : problems_of(given, Pointers::kIgnored)) {
      if (problem.device_type == ATTN_DEVICE_CPU || !problem.pass->has_work(problem)) continue;
      const Target target = target_for(problem, arch);
      const auto arch_index = static_cast<uint32_t>(launch_table().find_arch(target.arch));
      const Request request = request_for(problem, target.arch, target.compute_units);
      for (const Step& step : complete_plan(request)) {
        planned.push_back(kernel_list().index(launch_table().index(*step.row), arch_index));
      }
    }
    *count = static_cast<uint32_t>(planned.size());
    if (!kernels) return;
    if (room < planned.size()) {
      fail(Status::kInvalidArgument, Field("count"), " is ", room, ", but the plan has ",
           planned.size(), " kernels: pass as much room");
    }
    std::copy(planned.begin(), planned.end(), kernels);
  });
}

template <typename Args>
attn_status explain_to(const Args* given, const char* arch, const char** text) {
  return answer_with_text(text, [&] {
    const std::vector<Problem> problems = problems_of(given, Pointers::kIgnored);
    if (problems[0].device_type == ATTN_DEVICE_CPU) {
      return std::string("CPU reference: serves every valid problem\n");
    }
    std::string answer;
    for (const Problem& problem : problems) {
      if (!problem.pass->has_work(problem)) {
        answer += problem.pass->idle;
        continue;
      }
      const Target target = target_for(problem, arch);
      const Request request = request_for(problem, target.arch, target.compute_units);
      answer += explain(launch_table(), request, complete_plan(request));
    }
    return answer;
  });
}

template <typename Args>
attn_status workspace_size_of(const Args* given, uint64_t* bytes) {
  return guarded([&] {
    require_place(bytes, "bytes", "size");
    *bytes = 0;
    const Problem problem = checked(given, Pointers::kIgnored);
    if (problem.device_type != ATTN_DEVICE_CPU) *bytes = problem.pass->workspace_size(problem);
  });
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention

using namespace AITER_ATTN_NAMESPACE::attention;
namespace runtime = AITER_ATTN_NAMESPACE::runtime;
namespace kernels = AITER_ATTN_NAMESPACE::kernels;

extern "C" {

uint32_t attn_abi_version(void) { return ATTN_ABI_VERSION; }

const char* attn_version(void) { return AITER_ATTN_VERSION; }

const char* attn_last_error(void) { return runtime::thread_message(); }

const char* attn_last_error_field(void) { return runtime::thread_field(); }

int64_t attn_last_error_index(void) { return runtime::thread_sequence(); }

// The functions of a pass.
#define ATTN_RUN(pass) \
  attn_status attn_##pass(const attn_##pass##_args* args) { return run(args); }
#define ATTN_WORKSPACE_SIZE(pass)                                                             \
  attn_status attn_##pass##_workspace_size(const attn_##pass##_args* args, uint64_t* bytes) { \
    return workspace_size_of(args, bytes);                                                    \
  }
#define ATTN_PLAN(pass)                                                             \
  attn_status attn_plan_##pass(const attn_##pass##_args* args, const char* arch,    \
                               uint32_t* kernels, uint32_t* count) {                \
    return plan(args, arch, kernels, count);                                        \
  }                                                                                 \
  attn_status attn_explain_##pass(const attn_##pass##_args* args, const char* arch, \
                                  const char** text) {                              \
    return explain_to(args, arch, text);                                            \
  }

ATTN_RUN(fwd)
ATTN_RUN(bwd)
ATTN_RUN(kvcache_fwd)
ATTN_RUN(append_kv)
ATTN_RUN(dropout_mask)
ATTN_WORKSPACE_SIZE(fwd)
ATTN_WORKSPACE_SIZE(bwd)
ATTN_WORKSPACE_SIZE(kvcache_fwd)
ATTN_PLAN(fwd)
ATTN_PLAN(bwd)
ATTN_PLAN(kvcache_fwd)
ATTN_PLAN(append_kv)

uint32_t attn_kernel_count(void) {
  uint32_t count = 0;
  guarded([&] { count = kernel_list().size(); });
  return count;
}

attn_status attn_kernel_info(uint32_t index, attn_kernel_info_t* info) {
  return guarded([&] {
    check_struct(info);
    const KernelList& all = kernel_list();
    if (index >= all.size()) {
      fail(Status::kInvalidArgument, Field("index"), " is ", index, ", but this build has ",
           all.size(), " kernels: pass less than attn_kernel_count()");
    }
    const LaunchTable& table = launch_table();
    const Kernel& kernel = all[index];
    const kernels::Row& row = table.row(kernel.row);
    const kernels::CodeObjectRow& object = all.object(index);
    const std::string key = runtime::hex(digest(object.key));
    attn_kernel_info_t answer = {};
    answer.name = table.name(row).data();
    answer.arch = table.arch(kernel.arch).data();
    answer.kind = name_of(row.traits.kind);
    answer.provider = kernels::provider_of(row.traits.kind);
    key.copy(answer.key, sizeof(answer.key) - 1);
    answer.code_object_size = object.size;
    answer.embedded_size = runtime::embedded_size(digest(object.key));
    write_struct(answer, info);
  });
}

attn_status attn_code_object(const char* key, void** data, uint64_t* size) {
  return guarded([&] {
    require_place(data, "data", "bytes");
    require_place(size, "size", "size");
    *data = nullptr;
    *size = 0;
    const runtime::Bytes bytes = runtime::library_store().get(ref_of(key));
    void* copy = std::malloc(std::max<size_t>(bytes.size(), 1));
    if (!copy) throw std::bad_alloc();
    std::copy(bytes.begin(), bytes.end(), static_cast<unsigned char*>(copy));
    *data = copy;
    *size = bytes.size();
  });
}

void attn_code_object_free(void* data) { std::free(data); }

attn_status attn_find_code_object(const char* key, const char** provider, const char** text) {
  return guarded([&] {
    require_place(provider, "provider", "provider's name");
    require_place(text, "text", "answer");
    *provider = *text = nullptr;
    std::string& answer = runtime::thread_answer();
    std::string name, lines;
    for (const runtime::Store::Told& told : runtime::library_store().look(ref_of(key))) {
      if (told.answer.has && name.empty()) name = told.provider;
      lines += concat(told.provider, ": ", told.answer.text, "\n");
    }
    // Both in the thread's one text, a zero between them.
    answer = concat(lines, '\0', name);
    *text = answer.c_str();
    *provider = answer.c_str() + lines.size() + 1;
  });
}

attn_status attn_fetch_code_object(const char* key, uint32_t* is_there) {
  return guarded([&] {
    require_place(is_there, "is_there", "answer");
    *is_there = 0;
    *is_there = runtime::library_store().fetch(ref_of(key)).has_value();
  });
}

attn_status attn_set_cache_dir(const char* folder) {
  return guarded([&] { runtime::set_cache_folder(folder); });
}

attn_status attn_cache_dir(const char** text) {
  return answer_with_text(text, [] { return runtime::cache_folder(); });
}

attn_status attn_warm_up(const uint32_t* kernels, uint32_t count) {
  return guarded([&] { runtime::library_warm_up().add(refs_of(kernels, count)); });
}

attn_status attn_warm_up_wait(const uint32_t* kernels, uint32_t count, int64_t milliseconds,
                              uint32_t* pending) {
  return guarded([&] {
    require_place(pending, "pending", "number of kernels");
    *pending = 0;
    std::vector<runtime::Digest> keys;
    for (const runtime::CodeObjectRef& ref : refs_of(kernels, count)) keys.push_back(ref.key);
    *pending = runtime::library_warm_up().wait(keys, std::chrono::milliseconds(milliseconds));
  });
}

attn_status attn_driver_info(int32_t device_type, const char** text) {
  return answer_with_text(text, [&] {
    if (device_type == ATTN_DEVICE_CUDA || device_type == ATTN_DEVICE_ROCM) {
      return runtime::driver_for(device_type).describe();
    }
    if (device_type != ATTN_DEVICE_CPU) {
      fail(Status::kInvalidArgument, Field("device_type"), " is ", device_type, ", but must be ",
           static_cast<int>(ATTN_DEVICE_CPU), " (CPU), ", static_cast<int>(ATTN_DEVICE_CUDA),
           " (CUDA) or ", static_cast<int>(ATTN_DEVICE_ROCM), " (ROCm)");
    }
    return concat("CPU reference, ", std::max(1u, std::thread::hardware_concurrency()),
                  " thread(s)");
  });
}

attn_status attn_set_kernels(const char* kernels) {
  return guarded([&] { set_kernels(kernels); });
}

void attn_set_interrupt(int (*poll)(void*), void* context) {
  runtime::thread_interrupt() = {poll, context};
}

}  // extern "C"
