// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/environment.h"
#include "aiter/runtime/hip_versions.h"
#include "aiter/runtime/rtc/rtc_compiler.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// With the slash at its end.
std::string folder_of(const SharedLibrary& library) {
  return library.file().substr(0, library.file().rfind('/') + 1);
}

class HipRtc final : public RtcCompiler {
 public:
  explicit HipRtc(SharedLibrary library)
      : RtcCompiler(std::move(library), "hipRTC", "hiprtc", "the hipRTC of ROCm 6 or 7") {
    code_ = code_getter("Code");
    find_comgr();
  }

  std::string identity() const override {
    std::string text = concat(RtcCompiler::identity(), " comgr ", comgr_);
    // hipRTC reads them at every compile; they may have any bytes.
    for (const char* name : {"HIPRTC_COMPILE_OPTIONS_APPEND", "HIPRTC_LINK_OPTIONS_APPEND"}) {
      const std::string value = variable(name);
      if (value.empty()) continue;
      text += concat(" ", name, " ", hex(sha256(value.data(), value.size())));
    }
    return text;
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
    return compile_with(source, headers, options, code_);
  }

 private:
  // Finds the comgr that hipRTC compiles with: the one that is loaded by now, else the one that
  // hipRTC will find, in its own folder or elsewhere.
  void find_comgr() {
    const std::vector<std::string> names = {"libamd_comgr.so.3", "libamd_comgr.so.2"};
    const std::string folder = folder_of(library());
    auto comgr = SharedLibrary::loaded_one_of(names);
    if (!comgr) comgr = SharedLibrary::open_one_of({folder + names[0], folder + names[1]});
    if (!comgr) comgr = SharedLibrary::open_one_of(names);
    comgr_ = comgr ? comgr->identity() : "not found";
  }

  CodeGetter code_;
  std::string comgr_;  // its identity
};

}  // namespace

std::unique_ptr<Compiler> open_hiprtc(const std::vector<std::string>& folders) {
  LibrarySearch search = {
      "hipRTC",
      kHipRtcLibraryVariable,
      hip_sonames("libhiprtc"),
      {},
      "install ROCm's libhiprtc " + hip_versions() + " (its wheel is rocm-sdk-core)"};
  const auto look_in = [&](const std::string& folder) {
    for (const std::string& soname : search.sonames) search.files.push_back(folder + soname);
  };
  // The two lie side by side in every ROCm, also in one that the dynamic linker does not know.
  if (auto hip = SharedLibrary::loaded_one_of(hip_sonames("libamdhip64"))) {
    look_in(folder_of(*hip));
  }
  for (const std::string& folder : folders) look_in(folder + "/_rocm_sdk_core/lib/");
  look_in("/opt/rocm/lib/");
  return std::make_unique<HipRtc>(SharedLibrary::open(search));
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
