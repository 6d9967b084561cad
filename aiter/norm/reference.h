// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Norms and softmax on the CPU, in double: the reference for kernels, and the computation in host
// memory.
#pragma once

#include "aiter/norm/problem.h"

namespace AITER_ATTN_NAMESPACE::norm {

// As aiter/norm.h defines them. Throw Status::kInterrupted where the calling thread's interrupt
// asks to stop. Results do not depend on how many threads share the work.
void reference(const NormForward& call);
void reference(const NormBackward& call);
void reference(const SoftmaxForward& call);
void reference(const SoftmaxBackward& call);

}  // namespace AITER_ATTN_NAMESPACE::norm
