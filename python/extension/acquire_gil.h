// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// Takes the GIL. Does not return where the interpreter has ended: its thread then stays where it is
// until the process ends, as CPython 3.14 has it.
void acquire_gil_or_stay(PyThreadState* state);

#ifdef __cplusplus
}
#endif
