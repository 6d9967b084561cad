// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Objects that another toolchain makes than the build's: another compiler, other device libraries,
// other headers of HIP and of C++. They have keys of their own, which follow from the build's spec.
// They serve where the build's object is nowhere to be had.
#pragma once

#include <string>
#include <vector>

#include "aiter/runtime/store/spec.h"

namespace AITER_ATTN_NAMESPACE::runtime {

inline constexpr char kIncludeFlag[] = "-I";

// The spec of the kernel's object by another toolchain: the same source, headers and arch, alone,
// and behind `first` the flags that are the kernel's. Flags about the build's own toolchain, and
// options for its version of LLVM, are left out; include folders are those below the folder of the
// headers.
CodeObjectSpec own_spec(const CodeObjectSpec& spec, std::string toolchain,
                        std::vector<std::string> first);

// The flags with include folders below another folder.
std::vector<std::string> with_includes_below(const std::string& folder,
                                             const std::vector<std::string>& flags);

}  // namespace AITER_ATTN_NAMESPACE::runtime
