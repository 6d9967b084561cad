// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The structs of the norm kernels' arguments, in the debug information that Python reads.
#include "kernels/norm/arguments.h"

row_kernels::NormForwardArguments norm_forward;
row_kernels::NormBackwardArguments norm_backward;
row_kernels::NormLongArguments norm_backward_long;
row_kernels::NormReduceArguments norm_backward_reduce;
row_kernels::SoftmaxForwardArguments softmax_forward;
row_kernels::SoftmaxBackwardArguments softmax_backward;
