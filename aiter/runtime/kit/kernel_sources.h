// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The sources of the library's kernels and the headers that these read, for compilers of the
// machine: a pack in a file (pack_file.h) whose keys are the digests of its objects. It has
//
//   sources        by the digest in `source` of a spec
//   header trees   by the digest in `headers`: a line "SHA256 NAME" for each header, sorted by name
//   headers        by the digests in these lines
//
// Among the trees is that of the headers that hipRTC needs beside a kernel's: kernels/hiprtc.
//
// So whoever has a spec has the proof of all that the pack gives for it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

inline constexpr char kKernelSourcesVariable[] = "AITER_ATTN_KERNEL_SOURCES";

class KernelSources {
 public:
  // Throws as open_pack_file() does.
  KernelSources(std::string path, std::string_view version);

  // Both throw Status::kUnsupported where the pack is of other kernels, and Status::kCorrupt.
  Bytes source(const CodeObjectSpec& spec) const;
  // The tree of a digest. By their names, which are relative paths below one folder.
  std::vector<SourceFile> headers(const std::string& tree) const;

 private:
  Bytes get(const std::string& digest, const char* what) const;

  const std::string path_;
  const std::unique_ptr<Provider> pack_;
};

// The file in AITER_ATTN_KERNEL_SOURCES, or else the first of `installed` that is there; "": none.
// Throws Status::kInvalidArgument where the variable's path is relative.
std::string find_kernel_sources(const std::vector<std::string>& installed);

}  // namespace AITER_ATTN_NAMESPACE::runtime
