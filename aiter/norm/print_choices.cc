// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// For tests/support/norms/choices.py: reads rows, a line each, and prints choose()'s results.
#include <iostream>
#include <map>
#include <string>

#include "aiter/norm/configure.h"

int main() {
  using namespace AITER_ATTN_NAMESPACE;
  using kernels::RowOperation;
  const std::map<std::string, RowOperation> operations = {
      {"rms_forward", RowOperation::kRmsForward},
      {"layer_forward", RowOperation::kLayerForward},
      {"softmax_forward", RowOperation::kSoftmaxForward},
      {"rms_backward", RowOperation::kRmsBackward},
      {"layer_backward", RowOperation::kLayerBackward},
      {"softmax_backward", RowOperation::kSoftmaxBackward},
  };
  norm::RowTraits rows = {};
  norm::DeviceTraits device = {};
  std::string operation;
  int64_t count = 0;  // of rows
  while (std::cin >> operation >> rows.hidden >> rows.vector >> rows.x_bytes >>
         rows.element_bytes >> rows.weight_bytes >> rows.sums >> rows.sixteen_bytes >>
         rows.shifted >> rows.largest_bytes >> count >> device.warp >> device.bulk_copies >>
         device.named_barriers >> device.shared_bytes) {
    const auto found = operations.find(operation);
    if (found == operations.end()) return 1;
    rows.layer = found->second == RowOperation::kLayerForward ||
                 found->second == RowOperation::kLayerBackward;
    rows.few_rows = norm::few_rows(found->second, count, rows);
    const auto& table = kernels::row_configurations(found->second);
    const kernels::RowConfiguration c = norm::choose(table, rows, device);
    std::cout << c.threads << " " << c.lanes << " " << c.cluster << " " << c.stages << " "
              << c.ctas_per_sm << " " << c.waves << " " << c.keep_weights << " " << c.hold_row
              << " " << c.lag << " " << c.on_demand << " " << c.few_rows << " " << c.split << "\n";
  }
}
