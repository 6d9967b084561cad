// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "aiter/runtime/rtc/rtc_compiler.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr char kVersions[] = "NVRTC 12 or 13";
constexpr int kOldestMajor = 12;
constexpr int kNewestMajor = 13;

class Nvrtc final : public RtcCompiler {
 public:
  explicit Nvrtc(SharedLibrary library)
      : RtcCompiler(std::move(library), "NVRTC", "nvrtc", kVersions) {
    if (version().first < kOldestMajor || version().first > kNewestMajor) {
      fail(Status::kDriver, describe(),
           " is of a version that is not known to this library, which ", "needs ", kVersions,
           ": pip install nvidia-cuda-nvrtc, or name another file in ", kNvrtcLibraryVariable);
    }
    cubin_ = code_getter("CUBIN");
    ptx_ = code_getter("PTX");
    rtc::GetNumSupportedArchs get_num_supported_archs;
    rtc::GetSupportedArchs get_supported_archs;
    bind("GetNumSupportedArchs", &get_num_supported_archs);
    bind("GetSupportedArchs", &get_supported_archs);
    int count = 0;
    check(get_num_supported_archs(&count), "GetNumSupportedArchs");
    archs_.resize(static_cast<size_t>(std::max(count, 0)));
    if (count > 0) check(get_supported_archs(archs_.data()), "GetSupportedArchs");
    std::sort(archs_.begin(), archs_.end());
    load_builtins();
  }

  std::string identity() const override {
    return concat(RtcCompiler::identity(), " builtins ", builtins_);
  }

  std::string target(const std::string& arch) const override {
    // A letter at the end (sm_90a): of this arch alone.
    const std::string digits = arch.substr(0, arch.find_last_of("0123456789") + 1);
    if (digits.compare(0, 3, "sm_") != 0 || digits.size() > 6 ||
        digits.find_first_not_of("0123456789", 3) != digits.npos) {
      fail(Status::kInvalidArgument, "'", arch, "' is no arch of NVIDIA's: sm_90, for example");
    }
    const auto capability = static_cast<int>(std::strtol(digits.c_str() + 3, nullptr, 10));
    const auto newer = std::upper_bound(archs_.begin(), archs_.end(), capability);
    if (newer == archs_.begin()) {
      fail(Status::kUnsupported, describe(), " compiles nothing for ", arch, ", only for sm_",
           archs_.empty() ? 0 : archs_.front(),
           " and newer: install an older NVRTC and name its file in ", kNvrtcLibraryVariable,
           ", or use another GPU");
    }
    if (*(newer - 1) == capability) return arch;
    return concat("compute_", *(newer - 1));
  }

  Bytes compile(const SourceFile& source, const std::vector<SourceFile>& headers,
                const std::vector<std::string>& flags, const std::string& target) const override {
    std::vector<std::string> options = {"--gpu-architecture=" + target};
    options.insert(options.end(), flags.begin(), flags.end());
    const bool machine_code = target.compare(0, 3, "sm_") == 0;
    return compile_with(source, headers, options, machine_code ? cubin_ : ptx_);
  }

 protected:
  // NVRTC alone gives the number of the failure, and names no file.
  std::string remedy(rtc::Result result) const override {
    if (result != rtc::kErrorBuiltinOperation) return "";
    return concat("NVRTC compiles with ", builtins_name(), ", which belongs beside it: install ",
                  "both anew (pip install --force-reinstall nvidia-cuda-nvrtc",
                  version().first == 12 ? "-cu12" : "", "), or name the file of a complete NVRTC ",
                  "in ", kNvrtcLibraryVariable);
  }

 private:
  // NVRTC looks for this library by its name when it first compiles, and its contents enter the
  // code. Not all of its wheels say that it is in NVRTC's own folder.
  void load_builtins() {
    const size_t slash = library().file().rfind('/');
    const std::string folder = library().file().substr(0, slash + 1);
    const auto found = SharedLibrary::open_one_of({folder + builtins_name(), builtins_name()});
    builtins_ = found ? found->identity() : "not found";  // NVRTC may know another name
  }

  std::string builtins_name() const {
    return concat("libnvrtc-builtins.so.", version().first, ".", version().second);
  }

  std::string builtins_;  // their identity
  CodeGetter cubin_, ptx_;
  std::vector<int> archs_;
};

}  // namespace

std::unique_ptr<Compiler> open_nvrtc(const std::vector<std::string>& folders) {
  LibrarySearch search = {"NVRTC",
                          kNvrtcLibraryVariable,
                          {"libnvrtc.so.13", "libnvrtc.so.12"},
                          {},
                          "install it (pip install nvidia-cuda-nvrtc)"};
  for (const std::string& folder : folders) {
    search.files.push_back(folder + "/nvidia/cu13/lib/libnvrtc.so.13");
    search.files.push_back(folder + "/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  }
  return std::make_unique<Nvrtc>(SharedLibrary::open(search));
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
