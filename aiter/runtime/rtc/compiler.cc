// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/rtc/compiler.h"

#include <utility>

#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// A compiler's log may repeat one mistake for every use of a template.
constexpr size_t kLogInMessage = 4000;

std::string message_with(const std::string& message, const std::string& log) {
  if (log.empty()) return message;
  if (log.size() <= kLogInMessage) return message + ":\n" + log;
  return message + ":\n" + utf8(log.substr(0, kLogInMessage)) + "\n[...]";
}

}  // namespace

CompileError::CompileError(const std::string& message, std::string log)
    : Error(Status::kInternal, message_with(message, log)), log_(std::move(log)) {}

std::unique_ptr<Compiler> open_compiler(const std::string& arch,
                                        const std::vector<std::string>& folders) {
  if (arch.compare(0, 3, "sm_") == 0) return open_nvrtc(folders);
  if (arch.compare(0, 3, "gfx") == 0) return open_hiprtc(folders);
  fail(Status::kUnsupported, "no compiler is known for '", arch, "', only for sm_* and gfx*");
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
