// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/compat/call.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <vector>

#include "aiter/compat/hip.h"
#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::compat {
namespace {

using runtime::Status;

// Of the thread's last call of the C ABI.
[[noreturn]] void throw_last_error(attn_status status) {
  throw runtime::Error(static_cast<Status>(status), attn_last_error(),
                       runtime::Field(attn_last_error_field()));
}

void check(attn_status status) {
  if (status != ATTN_OK) throw_last_error(status);
}

attn_status plan(const attn_fwd_args& args, uint32_t* kernels, uint32_t* count) {
  return attn_plan_fwd(&args, nullptr, kernels, count);
}
attn_status plan(const attn_bwd_args& args, uint32_t* kernels, uint32_t* count) {
  return attn_plan_bwd(&args, nullptr, kernels, count);
}
template <typename Args>
attn_status plan(const Args& args) {
  uint32_t count = 0;
  return plan(args, nullptr, &count);
}
attn_status workspace_size(const attn_fwd_args& args, uint64_t* bytes) {
  return attn_fwd_workspace_size(&args, bytes);
}
attn_status workspace_size(const attn_bwd_args& args, uint64_t* bytes) {
  return attn_bwd_workspace_size(&args, bytes);
}
attn_status workspace_size(const attn_kvcache_fwd_args& args, uint64_t* bytes) {
  return attn_kvcache_fwd_workspace_size(&args, bytes);
}
attn_status launch(const attn_fwd_args& args) { return attn_fwd(&args); }
attn_status launch(const attn_bwd_args& args) { return attn_bwd(&args); }
attn_status launch(const attn_kvcache_fwd_args& args) { return attn_kvcache_fwd(&args); }

// Milliseconds of one run, where they are asked for.
float timed(const ck_tile::stream_config& s, const std::function<void()>& once) {
  if (!s.time_kernel_) {
    once();
    return 0;
  }
  if (s.nrepeat_ < 1) {
    runtime::refuse("stream.nrepeat_", s.nrepeat_, "must be at least 1 with time_kernel_");
  }
  for (int i = 0; i < s.cold_niters_; ++i) once();
  Event start, stop;
  start.record(s.stream_id_);
  for (int i = 0; i < s.nrepeat_; ++i) once();
  stop.record(s.stream_id_);
  return stop.milliseconds_since(start) / static_cast<float>(s.nrepeat_);
}

template <typename Call>
void prepare(std::vector<Call>* calls, attn_kernels kernels, int rounding) {
  for (Call& call : *calls) {
    call.args.problem = &call.problem;
    call.problem.kernels = kernels;
    call.problem.rounding = rounding;
  }
}

attn_kernels kernels_of(bool use_asm) { return use_asm ? ATTN_KERNELS_DEFAULT : ATTN_KERNELS_CK; }

bool is_asm(uint32_t kernel) {
  attn_kernel_info_t info = {};
  info.struct_size = sizeof(info);
  check(attn_kernel_info(kernel, &info));
  return std::strcmp(info.provider, "asm") == 0;
}

// Whether AITER's assembly is among the kernels that serve a call.
template <typename Args>
bool takes_asm(const Args& args) {
  uint32_t count = 0;
  const attn_status status = plan(args, nullptr, &count);
  if (status == ATTN_ERROR_UNSUPPORTED) return false;
  check(status);
  std::vector<uint32_t> kernels(count);
  check(plan(args, kernels.data(), &count));
  return std::any_of(kernels.begin(), kernels.end(), is_asm);
}

// The calls follow each other on one stream, and share their memory.
template <typename Call>
uint64_t set_workspace_sizes(std::vector<Call>* calls) {
  uint64_t most = 0;
  for (Call& call : *calls) {
    check(workspace_size(call.args, &call.args.workspace_size));
    most = std::max(most, call.args.workspace_size);
  }
  return most;
}

// The calls have all but their memory.
template <typename Call>
float launch_all(std::vector<Call>* calls, const ck_tile::stream_config& s,
                 const WorkspaceAlloc& alloc) {
  const uint64_t most = set_workspace_sizes(calls);
  std::optional<Scratch> scratch;
  void* workspace = nullptr;
  if (most != 0 && alloc) {
    workspace = alloc(most);
    if (!workspace) {
      runtime::fail(Status::kOutOfMemory, runtime::Field("workspace_alloc"), " returned NULL for ",
                    most, " bytes");
    }
  } else if (most != 0) {
    workspace = scratch.emplace(most, s.stream_id_).data();
  }
  for (Call& call : *calls) call.args.workspace = call.args.workspace_size ? workspace : nullptr;
  return timed(s, [calls] {
    for (const Call& call : *calls) check(launch(call.args));
  });
}

template <typename Call>
float run_all(std::vector<Call> calls, const Preference& preference,
              const ck_tile::stream_config& s, const WorkspaceAlloc& alloc) {
  const auto prefer = [&calls](attn_kernels kernels, int rounding) {
    prepare(&calls, kernels, rounding);
  };
  prefer(kernels_of(preference.use_asm), 0);
  if (preference.use_asm && preference.rounding != 0) {
    // Composable Kernel's kernels, which then serve, have one rounding.
    prefer(ATTN_KERNELS_DEFAULT, preference.rounding);
    if (plan(calls.front().args) == ATTN_ERROR_UNSUPPORTED) prefer(ATTN_KERNELS_DEFAULT, 0);
  }
  if (preference.only_check) return takes_asm(calls.front().args) ? 1.0f : -1.0f;
  return launch_all(&calls, s, alloc);
}

// The text, which begins with a field of the C ABI, with AITER's name of it.
std::string translated(const std::string& text, const std::string& field, const Names& names) {
  if (field.empty() || text.compare(0, field.size(), field) != 0) return text;
  for (const auto& [ours, theirs] : names) {
    if (field == ours) return theirs + text.substr(field.size());
  }
  return text;
}

void tell(const char* function, const char* text) noexcept {
  std::fprintf(stderr, "%s: %s\n", function, text);
}

}  // namespace

float answered(const char* function, const std::function<Names()>& names,
               const std::function<float()>& body) noexcept {
  try {
    try {
      return body();
    } catch (const runtime::Error& error) {
      tell(function, translated(error.what(), error.field(), names()).c_str());
    }
  } catch (const std::exception& error) {
    tell(function, error.what());
  } catch (...) {
    tell(function, "unknown error");
  }
  return -1;
}

float run(std::vector<Forward> calls, const Preference& preference,
          const ck_tile::stream_config& stream, const WorkspaceAlloc& alloc) {
  return run_all(std::move(calls), preference, stream, alloc);
}

float run(std::vector<Backward> calls, const Preference& preference,
          const ck_tile::stream_config& stream, const WorkspaceAlloc& alloc) {
  return run_all(std::move(calls), preference, stream, alloc);
}

float run(const Cached& call, const ck_tile::stream_config& stream) {
  std::vector<Cached> calls = {call};
  calls[0].args.problem = &calls[0].problem;
  calls[0].args.cache = &calls[0].cache;
  return launch_all(&calls, stream, {});
}

bool is_served(Forward call, bool use_asm) {
  call.args.problem = &call.problem;
  call.problem.kernels = kernels_of(use_asm);
  const attn_status status = plan(call.args);
  if (status != ATTN_OK && status != ATTN_ERROR_UNSUPPORTED) throw_last_error(status);
  return status == ATTN_OK;
}

uint64_t workspace_size(std::vector<Backward> calls, bool use_asm) {
  prepare(&calls, kernels_of(use_asm), 0);
  return set_workspace_sizes(&calls);
}

}  // namespace AITER_ATTN_NAMESPACE::compat
