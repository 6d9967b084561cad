// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "kernels/sinks/sinks_kernel.h"

extern "C" __global__ __launch_bounds__(sinks::kBlockSize) void attn_sink_bf16(sinks::Args args) {
  sinks::apply<__bf16>(args);
}
