// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The launch table for Python (launches.py): its rows, and the kernel arguments and grids that
// their launch functions make. Python reads the structs' layout from this file's debug information.
#include "kernels/launch_table/launch_table.h"

namespace kernels = AITER_ATTN_NAMESPACE::kernels;

#define LAUNCHES_API extern "C" __attribute__((visibility("default")))

LAUNCHES_API uint32_t launches_count() { return kernels::launch_table().row_count(); }

LAUNCHES_API const char* launches_name(uint32_t index) {
  const kernels::LaunchTable& table = kernels::launch_table();
  return table.name(table.row(index)).data();
}

LAUNCHES_API void launches_row(uint32_t index, kernels::Row* out) {
  *out = kernels::launch_table().row(index);
}

LAUNCHES_API void launches_make(uint32_t index, const kernels::LaunchArgs* args,
                                kernels::Launch* out) {
  const kernels::LaunchTable& table = kernels::launch_table();
  table.launch(table.row(index))(*args, out);
}
