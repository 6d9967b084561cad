// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The drawn instances for Python (launches.py), and their kernel arguments and grids.
#include "tests/emulation/sample/sample_table.h"

uint32_t launches_count() { return kSampleRowCount; }

void launches_instance(uint32_t index, LaunchesInstance* out) {
  *out = kSampleRows[index].instance;
}

extern "C" __attribute__((visibility("default"))) void launches_make_direct(uint32_t index,
                                                                            const DirectArgs* args,
                                                                            KernelLaunch* out) {
  kSampleRows[index].launch(*args, out);
}
