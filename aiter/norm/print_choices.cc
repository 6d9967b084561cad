// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// For choose_test.py: reads problems, a line of numbers each, and prints choose()'s results.
#include <iostream>

#include "aiter/norm/configure.h"

int main() {
  using namespace AITER_ATTN_NAMESPACE;
  norm::RowTraits rows = {};
  norm::DeviceTraits device = {};
  int operation = 0;
  while (std::cin >> operation >> rows.hidden >> rows.vector >> rows.x_bytes >>
         rows.element_bytes >> rows.weight_bytes >> rows.sums >> rows.sixteen_bytes >>
         device.warp >> device.bulk_copies >> device.named_barriers >> device.shared_bytes) {
    const auto& table = kernels::row_configurations(static_cast<kernels::RowOperation>(operation));
    const kernels::RowConfiguration c = norm::choose(table, rows, device);
    std::cout << c.threads << " " << c.lanes << " " << c.cluster << " " << c.stages << " "
              << c.ctas_per_sm << " " << c.waves << " " << c.keep_weights << " " << c.hold_row
              << " " << c.lag << " " << c.on_demand << "\n";
  }
}
