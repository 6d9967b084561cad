// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The table of launch configurations (configurations.toml), for the library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace AITER_ATTN_NAMESPACE::kernels {

// How a kernel shares rows out; README.md explains the fields.
struct RowConfiguration {
  int threads, lanes, cluster, stages, ctas_per_sm, waves, keep_weights, hold_row, lag, on_demand;
  // Not of the table:
  int few_rows = 0;
  int split = 0;  // norm_backward: norm_long.cpp takes the rows
};

enum class RowOperation {
  kRmsForward,
  kLayerForward,
  kSoftmaxForward,
  kRmsBackward,
  kLayerBackward,
  kSoftmaxBackward,
};

// Serves hidden sizes down to the row above it.
struct TunedRow {
  int64_t hidden;
  RowConfiguration configuration;
};

struct RowConfigurations {
  const TunedRow* tuned;  // by rising hidden size
  size_t count;
  RowConfiguration general;  // beyond them
};

const RowConfigurations& row_configurations(RowOperation operation);

// How rows are split among workgroups; the table explains the fields.
struct RowSplit {
  int64_t slice, batch, most_parts, enough_workgroups;
};

RowSplit row_split();

}  // namespace AITER_ATTN_NAMESPACE::kernels
