// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/kit/own_spec.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

bool begins(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

}  // namespace

CodeObjectSpec own_spec(const CodeObjectSpec& spec, std::string toolchain,
                        std::vector<std::string> first) {
  CodeObjectSpec made = spec.alone();
  made.toolchain = std::move(toolchain);
  made.flags = std::move(first);
  // The toolchain's flags come before the language.
  auto flag = std::find(spec.flags.begin(), spec.flags.end(), "-x");
  for (; flag != spec.flags.end(); ++flag) {
    if (*flag == "-mllvm") {
      if (flag + 1 != spec.flags.end()) ++flag;
      continue;
    }
    if (begins(*flag, "-ffile-prefix-map=") || begins(*flag, "-D__AMDGCN_") ||
        begins(*flag, "-U__AMDGCN_")) {
      continue;
    }
    // Names of headers are paths in their repositories.
    constexpr std::string_view kExternal = "-Iexternal/";
    if (begins(*flag, kExternal)) {
      const size_t slash = flag->find('/', kExternal.size());
      made.flags.push_back(kIncludeFlag +
                           (slash == flag->npos ? std::string(".") : flag->substr(slash + 1)));
    } else {
      made.flags.push_back(*flag);
    }
  }
  return made;
}

std::vector<std::string> with_includes_below(const std::string& folder,
                                             const std::vector<std::string>& flags) {
  std::vector<std::string> made;
  made.reserve(flags.size());
  for (const std::string& flag : flags) {
    made.push_back(begins(flag, kIncludeFlag)
                       ? concat(kIncludeFlag, folder, "/", flag.substr(sizeof(kIncludeFlag) - 1))
                       : flag);
  }
  return made;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
