// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Attention on the CPU from C++: with one key o is v; a wrong argument is an exception.
#include <aiter/attn.hpp>
#include <cstdio>
#include <string>
#include <vector>

int main() {
  namespace attn = AITER_ATTN_NAMESPACE::attn;
  const std::vector<float> q{1, -2, 3, 4}, k{2, 3, 5, 7}, v{4, 3, 2, 1};
  std::vector<float> o(4);
  attn_problem problem = attn::batch_problem(ATTN_DTYPE_FP32, {1, 1, 1, 1, 1, 4});
  attn_fwd_args args = attn::fwd_args(&problem);
  args.q = attn::contiguous(q.data(), 1, 1, 4);
  args.k = attn::contiguous(k.data(), 1, 1, 4);
  args.v = attn::contiguous(v.data(), 1, 1, 4);
  args.o = attn::contiguous(o.data(), 1, 1, 4);
  attn::fwd(args);
  if (o != v) return 2;
  problem.softmax_scale = -1;
  try {
    attn::fwd(args);
    return 3;
  } catch (const attn::Error& error) {
    if (std::string(error.what()).find("softmax_scale") == std::string::npos) return 4;
  }
  std::printf("right; %d kernels\n", static_cast<int>(attn_kernel_count()));
  return 0;
}
