// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The drawn instances: the generated table.cc has the rows.
#pragma once

#include "tests/emulation/kernels/launches.h"
#include "tests/emulation/sample/direct_args.h"

struct SampleRow {
  LaunchesInstance instance;
  void (*launch)(const DirectArgs& args, KernelLaunch* launch);
};

extern const SampleRow kSampleRows[];
extern const unsigned kSampleRowCount;
