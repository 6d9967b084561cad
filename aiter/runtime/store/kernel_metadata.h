// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The metadata of a code object's kernels: a note in the ELF file, in MessagePack, as LLVM's guide
// to the AMDGPU target describes it.
#pragma once

#include <string>

#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// Why an object is not of the kernel that `ref` is launched as, in words that follow its name; "":
// it is, or its bytes have a digest that proves it, or nothing is known of the launch.
std::string misfit(const CodeObjectRef& ref, const Bytes& object);

}  // namespace AITER_ATTN_NAMESPACE::runtime
