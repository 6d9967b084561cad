// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Prints kernels/norm/ahead_of_time/kernels.bzl: what configure() gives for the shapes below, on
// the devices below.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>
#include <vector>

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
  bool columns;  // the sums over the rows, not what takes the rows
};

constexpr Operation kOperations[] = {
    {"layer_backward", RowOperation::kLayerBackward, false, false},
    {"layer_columns", RowOperation::kLayerBackward, false, true},
    {"layer_forward", RowOperation::kLayerForward, true, false},
    {"rms_backward", RowOperation::kRmsBackward, false, false},
    {"rms_columns", RowOperation::kRmsBackward, false, true},
    {"rms_forward", RowOperation::kRmsForward, false, false},
    {"softmax_backward", RowOperation::kSoftmaxBackward, false, false},
    {"softmax_forward", RowOperation::kSoftmaxForward, false, false},
};

constexpr int64_t kHidden[] = {4096, 8192};

// Dense rows of bfloat16; on_demand: of a call with a barrier.
norm::Shape shape(const Operation& operation, int64_t hidden, bool on_demand) {
  norm::Shape shape = {};
  shape.operation = operation.operation;
  shape.dtypes = {ATTN_DTYPE_BF16, ATTN_DTYPE_BF16, ATTN_DTYPE_BF16};
  shape.hidden = hidden;
  shape.vector = 8;
  shape.beta = operation.beta;
  shape.mask = ATTN_SOFTMAX_MASK_NONE;
  shape.on_demand = on_demand;
  return shape;
}

norm::Kernels kernels_for(const norm::Shape& shape, const Device& device) {
  return norm::configure(shape, norm::device_traits(device.arch, device.shared_bytes));
}

bool uses_a_barrier(const norm::Shape& shape) {
  return std::any_of(std::begin(kDevices), std::end(kDevices), [&](const Device& device) {
    return kernels_for(shape, device).configuration.on_demand != 0;
  });
}

void print(const std::string& name, const norm::Shape& shape, bool columns) {
  std::string source;
  std::map<std::string, std::string> archs_by_flags;
  for (const Device& device : kDevices) {
    const norm::Kernels k = kernels_for(shape, device);
    source = columns ? norm::kColumnsSource : k.source;
    std::vector<std::string> sorted_flags = columns ? k.columns_flags : k.flags;
    std::sort(sorted_flags.begin(), sorted_flags.end());
    std::string flags;
    for (const std::string& flag : sorted_flags) flags += "                \"" + flag + "\",\n";
    std::string& archs = archs_by_flags[flags];
    archs += (archs.empty() ? "" : " ") + std::string(device.arch);
  }
  std::map<std::string, std::string> sorted;
  for (const auto& [flags, archs] : archs_by_flags) sorted[archs] = flags;
  std::printf("    \"%s\": struct(\n        flags = {\n", name.c_str());
  for (const auto& [archs, flags] : sorted) {
    std::printf("            \"%s\": [\n%s            ],\n", archs.c_str(), flags.c_str());
  }
  std::printf("        },\n");
  std::printf("        source = \"%s\",\n    ),\n", source.c_str());
}

}  // namespace

int main() {
  std::printf(
      "# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0\n"
      "\"\"\"Norm and softmax kernels that a library can have built in, as data.\n\n"
      "Generated: ./bazelw run //aiter/norm:print_kernels > "
      "kernels/norm/ahead_of_time/kernels.bzl\n\"\"\"\n\n"
      "# Name -> its source, and by archs the flags that make it that kernel. dealt_NAME is what\n"
      "# calls without a barrier take, where that is another kernel for some arch.\nKERNELS = {\n");
  for (const bool on_demand : {false, true}) {
    for (const Operation& operation : kOperations) {
      for (const int64_t hidden : kHidden) {
        const std::string name = std::string(operation.name) + "_bf16_" + std::to_string(hidden);
        const norm::Shape with_barrier = shape(operation, hidden, true);
        if (on_demand) {
          print(name, with_barrier, operation.columns);
        } else if (uses_a_barrier(with_barrier)) {
          print("dealt_" + name, shape(operation, hidden, false), operation.columns);
        }
      }
    }
  }
  std::printf("}\n");
}
