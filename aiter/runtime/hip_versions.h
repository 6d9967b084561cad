// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The HIP runtime's library: the variable that names it, and the major versions that are looked for
// without. A version whose functions have changed is refused by the name of the first that it lacks
// (SharedLibrary::bind).
#pragma once

#include <iterator>
#include <string>
#include <vector>

namespace AITER_ATTN_NAMESPACE::runtime {

// The environment variable that names its file, instead of looking for it.
inline constexpr char kHipLibraryVariable[] = "AITER_ATTN_HIP_LIBRARY";

inline constexpr int kHipVersions[] = {8, 7, 6};  // the newest first

// "libamdhip64": {"libamdhip64.so.8", ...}, in this order.
inline std::vector<std::string> hip_sonames(const std::string& library) {
  std::vector<std::string> sonames;
  for (const int version : kHipVersions) {
    sonames.push_back(library + ".so." + std::to_string(version));
  }
  return sonames;
}

// "8, 7 or 6"
inline std::string hip_versions() {
  std::string text;
  for (const int version : kHipVersions) {
    const bool last = version == *(std::end(kHipVersions) - 1);
    text += text.empty() ? "" : last ? " or " : ", ";
    text += std::to_string(version);
  }
  return text;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
