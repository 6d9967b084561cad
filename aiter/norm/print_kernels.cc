// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Prints kernels/norm/ahead_of_time/kernels.bzl: what configure() gives for the shapes below, on
// the devices below.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>

#include "aiter/norm/configure.h"

namespace {

using namespace AITER_ATTN_NAMESPACE;
using kernels::RowOperation;

struct Device {
  const char* arch;
  int64_t shared_bytes;  // that a CTA can have, as the driver says
};

constexpr Device kDevices[] = {
    {"gfx942", 64 << 10}, {"gfx950", 160 << 10}, {"sm_80", 163 << 10},
    {"sm_90", 227 << 10}, {"sm_100", 227 << 10},
};

struct Operation {
  const char* name;
  RowOperation operation;
  bool beta;
};

constexpr Operation kOperations[] = {
    {"layer_backward", RowOperation::kLayerBackward, false},
    {"layer_forward", RowOperation::kLayerForward, true},
    {"rms_backward", RowOperation::kRmsBackward, false},
    {"rms_forward", RowOperation::kRmsForward, false},
    {"softmax_backward", RowOperation::kSoftmaxBackward, false},
    {"softmax_forward", RowOperation::kSoftmaxForward, false},
};

constexpr int64_t kHidden[] = {4096, 8192};

// Dense rows of bfloat16.
norm::Shape shape(const Operation& operation, int64_t hidden) {
  norm::Shape shape = {};
  shape.operation = operation.operation;
  shape.dtypes = {ATTN_DTYPE_BF16, ATTN_DTYPE_BF16, ATTN_DTYPE_BF16};
  shape.hidden = hidden;
  shape.vector = 8;
  shape.beta = operation.beta;
  shape.mask = ATTN_SOFTMAX_MASK_NONE;
  shape.on_demand = true;
  return shape;
}

}  // namespace

int main() {
  std::printf(
      "# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0\n"
      "\"\"\"Norm and softmax kernels that a library can have built in, as data.\n\n"
      "Generated: ./bazelw run //aiter/norm:print_kernels > "
      "kernels/norm/ahead_of_time/kernels.bzl\n\"\"\"\n\n"
      "# Name -> its source, and by archs the flags that make it that kernel.\nKERNELS = {\n");
  for (const Operation& operation : kOperations) {
    for (const int64_t hidden : kHidden) {
      const norm::Shape s = shape(operation, hidden);
      std::string source;
      std::map<std::string, std::string> archs_by_flags;
      for (const Device& device : kDevices) {
        norm::Kernels k = norm::configure(s, norm::device_traits(device.arch, device.shared_bytes));
        source = k.source;
        std::sort(k.flags.begin(), k.flags.end());
        std::string flags;
        for (const std::string& flag : k.flags) flags += "                \"" + flag + "\",\n";
        std::string& archs = archs_by_flags[flags];
        archs += (archs.empty() ? "" : " ") + std::string(device.arch);
      }
      std::map<std::string, std::string> sorted;
      for (const auto& [flags, archs] : archs_by_flags) sorted[archs] = flags;
      std::printf("    \"%s_bf16_%lld\": struct(\n        flags = {\n", operation.name,
                  static_cast<long long>(hidden));
      for (const auto& [archs, flags] : sorted) {
        std::printf("            \"%s\": [\n%s            ],\n", archs.c_str(), flags.c_str());
      }
      std::printf("        },\n");
      std::printf("        source = \"%s\",\n    ),\n", source.c_str());
    }
  }
  std::printf("}\n");
}
