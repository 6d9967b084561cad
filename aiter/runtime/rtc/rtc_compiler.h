// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The common part of NVRTC and hipRTC.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "aiter/runtime/rtc/compiler.h"
#include "aiter/runtime/rtc/rtc_api.h"
#include "aiter/runtime/shared_library.h"

namespace AITER_ATTN_NAMESPACE::runtime {

class RtcCompiler : public Compiler {
 public:
  std::string describe() const override;
  std::string identity() const override;

 protected:
  // name, prefix: "NVRTC", "nvrtc"; versions: which ones this library works with, for messages.
  RtcCompiler(SharedLibrary library, std::string name, std::string prefix, std::string versions);

  const SharedLibrary& library() const { return library_; }
  std::pair<int, int> version() const { return version_; }
  template <typename F>
  void bind(const std::string& symbol, F* function) const {
    library_.bind(prefix_ + symbol, versions_, function);
  }
  // The next step after a failed result; "": the result has no remedy of its own.
  virtual std::string remedy(rtc::Result) const { return ""; }
  // Throws where result is not success, naming the call.
  void check(rtc::Result result, const std::string& call) const;

  struct CodeGetter {
    std::string name;  // "CUBIN": functions GetCUBINSize and GetCUBIN
    rtc::GetSize size;
    rtc::GetBytes bytes;
  };
  CodeGetter code_getter(const std::string& name) const;
  Bytes compile_with(const SourceFile& source, const std::vector<SourceFile>& headers,
                     const std::vector<std::string>& options, const CodeGetter& code) const;

 private:
  class OpenProgram;

  const SharedLibrary library_;
  const std::string name_, prefix_, versions_;
  std::pair<int, int> version_;
  std::string identity_;  // patch releases have the same version
  rtc::GetErrorString get_error_string_;
  rtc::CreateProgram create_program_;
  rtc::CompileProgram compile_program_;
  rtc::DestroyProgram destroy_program_;
  rtc::GetSize get_log_size_;
  rtc::GetBytes get_log_;
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
