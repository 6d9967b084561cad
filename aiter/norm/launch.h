// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Calls on a GPU: from a validated call to launches.
#pragma once

#include <cstdint>

#include "aiter/norm/problem.h"

namespace AITER_ATTN_NAMESPACE::norm {

// Queue the kernels of a call on its stream and return. Its kernels are compiled or loaded at the
// first call of a shape on a device; later calls find them at once. Throw Status::kUnsupported
// where the device or the build has no kernel, Status::kInvalidArgument for a workspace that is too
// small, and what the driver, the store and the compiler throw.
void launch(const NormForward& call);
void launch(const NormBackward& call);
void launch(const SoftmaxForward& call);
void launch(const SoftmaxBackward& call);

// Bytes of workspace that the call needs.
uint64_t workspace_size(const NormBackward& call);

}  // namespace AITER_ATTN_NAMESPACE::norm
