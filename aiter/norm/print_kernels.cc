// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Prints kernels/norm/ahead_of_time/kernels.json: configure()'s results for the shapes below, on
// the devices below.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "aiter/norm/configure.h"
#include "kernels/archs/archs.h"

namespace {

using namespace AITER_ATTN_NAMESPACE;
using kernels::RowOperation;

struct Device {
  std::string arch;
  int64_t shared_bytes;  // that a CTA can have, as the driver says
};

// AMD's are those whose waves the kernels are for.
std::vector<Device> devices() {
  std::vector<Device> all;
  for (const kernels::ArchFacts& arch : kernels::kArchs) {
    if (arch.wave_size == 64) all.push_back({std::string(arch.name), arch.lds});
  }
  all.insert(all.end(), {{"sm_80", 163 << 10},
                         {"sm_89", 99 << 10},
                         {"sm_90", 227 << 10},
                         {"sm_100", 227 << 10},
                         {"sm_100a", 227 << 10},
                         {"sm_103", 227 << 10},
                         {"sm_120", 99 << 10}});
  return all;
}

struct Operation {
  const char* name;
  RowOperation operation;
  bool beta;
  bool columns;  // the sums over the rows, not the kernel that takes the rows
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

struct Call {
  const char* prefix;  // of the kernel's name
  int few_rows;        // of a Shape
  bool on_demand;      // of a Shape
};

constexpr Call kWithBarrier = {"", 0, true};
constexpr Call kCalls[] = {{"dealt_", 0, false},
                           {"dozens_", norm::kDozens, false},
                           {"handful_", norm::kHandful, false},
                           {"hundreds_", norm::kHundreds, false},
                           kWithBarrier};

// Dense rows of bfloat16.
norm::Shape shape(const Operation& operation, int64_t hidden, const Call& call) {
  norm::Shape shape = {};
  shape.operation = operation.operation;
  shape.dtypes = {ATTN_DTYPE_BF16, ATTN_DTYPE_BF16, ATTN_DTYPE_BF16};
  shape.hidden = hidden;
  shape.vector = 8;
  shape.beta = operation.beta;
  shape.mask = ATTN_SOFTMAX_MASK_NONE;
  shape.on_demand = call.on_demand;
  shape.few_rows = call.few_rows;
  return shape;
}

norm::Kernels kernels_for(const norm::Shape& shape, const Device& device) {
  return norm::configure(shape, norm::device_traits(device.arch, device.shared_bytes));
}

bool uses_a_barrier(const norm::Shape& shape) {
  const std::vector<Device> all = devices();
  return std::any_of(all.begin(), all.end(), [&](const Device& device) {
    return kernels_for(shape, device).configuration.on_demand != 0;
  });
}

std::string joined(const std::vector<std::string>& texts, const char* between) {
  std::string text;
  for (const std::string& each : texts) text += (text.empty() ? "" : between) + each;
  return text;
}

// A kernel's entry: its source, and by arch the flags that make it.
std::string entry(const std::string& name, const norm::Shape& shape, bool columns) {
  std::string source;
  std::map<std::string, std::vector<std::string>> archs_by_flags;
  for (const Device& device : devices()) {
    const norm::Kernels k = kernels_for(shape, device);
    source = columns ? norm::kColumnsSource : k.source;
    std::vector<std::string> flags = columns ? k.columns_flags : k.flags;
    std::sort(flags.begin(), flags.end());
    for (std::string& flag : flags) flag = "    \"" + flag + "\"";
    archs_by_flags[joined(flags, ",\n")].push_back(device.arch);
  }
  std::vector<std::string> variants;
  for (const auto& [flags, archs] : archs_by_flags) {
    variants.push_back("   \"" + joined(archs, " ") + "\": [\n" + flags + "\n   ]");
  }
  std::sort(variants.begin(), variants.end());
  return " \"" + name + "\": {\n  \"source\": \"" + source + "\",\n  \"flags\": {\n" +
         joined(variants, ",\n") + "\n  }\n }";
}

}  // namespace

int main() {
  std::vector<std::string> entries;
  for (const Call& call : kCalls) {
    for (const Operation& operation : kOperations) {
      for (const int64_t hidden : kHidden) {
        const norm::Shape called = shape(operation, hidden, call);
        if (call.few_rows > 0) {
          if (operation.columns || !norm::has_kind(called)) continue;  // one kernel sums them
        } else if (!call.on_demand && !uses_a_barrier(shape(operation, hidden, kWithBarrier))) {
          continue;  // the same with a barrier
        }
        const std::string name =
            std::string(call.prefix) + operation.name + "_bf16_" + std::to_string(hidden);
        entries.push_back(entry(name, called, operation.columns));
      }
    }
  }
  std::printf("{\n%s\n}\n", joined(entries, ",\n").c_str());
}
