// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The tensors that AITER's assembly takes, in any pass: it computes offsets in 32 bits, and loads
// and stores 16 bytes at a time.
#pragma once

#include <cstdint>

#include "aiter/attention/problem/operands.h"
#include "aiter/attention/problem/problem.h"

namespace AITER_ATTN_NAMESPACE::attention {

// A tensor, or where a plan is asked for without it a contiguous one.
attn_tensor given_or_contiguous(const attn_tensor& tensor, const Extents& extents);

// Why its kernels do not take an operand of 16-bit elements, as the end of a sentence about them;
// NULL: they do. A plan may have no tensors: they are taken for contiguous ones.
const char* why_not_asm_operand(const Problem& problem, const Operand& operand);

// Whether contiguous memory of so many rows is within 32 bits of bytes.
bool asm_reaches(int64_t rows, int64_t row_bytes);

}  // namespace AITER_ATTN_NAMESPACE::attention
