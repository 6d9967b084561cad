// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/rtc/rtc_compiler.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

class HipRtc final : public RtcCompiler {
 public:
  explicit HipRtc(SharedLibrary library)
      : RtcCompiler(std::move(library), "hipRTC", "hiprtc", "the hipRTC of ROCm 6 or 7") {
    code_ = code_getter("Code");
  }

  // Which archs it knows it says by compiling.
  std::string target(const std::string& arch) const override {
    if (arch.compare(0, 3, "gfx") != 0) {
      fail(Status::kInvalidArgument, "'", arch, "' is no arch of AMD's: gfx942, for example");
    }
    return arch;
  }

  Bytes compile(const SourceFile& source, const std::vector<SourceFile>& headers,
                const std::vector<std::string>& flags, const std::string& target) const override {
    std::vector<std::string> options = {"--offload-arch=" + target};
    options.insert(options.end(), flags.begin(), flags.end());
    return compile_with(source, headers, std::move(options), code_);
  }

 private:
  CodeGetter code_;
};

}  // namespace

std::unique_ptr<Compiler> open_hiprtc() {
  return std::make_unique<HipRtc>(SharedLibrary::open({"hipRTC",
                                                       kHipRtcLibraryVariable,
                                                       {"libhiprtc.so.7", "libhiprtc.so.6"},
                                                       {},
                                                       "install ROCm's libhiprtc 6 or 7"}));
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
