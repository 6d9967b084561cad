// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Comes before any other header (by -include): declares the standard streams and takes the place
// of <iostream>.
//
// Upstream's headers include <iostream> for debugging output that is never called here. Its static
// initialiser would bring all of libstdc++'s stream set-up into the library and run it at load.
#pragma once

#include <istream>
#include <ostream>

#ifndef _GLIBCXX_IOSTREAM
#define _GLIBCXX_IOSTREAM 1

namespace std {
extern istream cin;
extern ostream cout;
extern ostream cerr;
extern ostream clog;
}  // namespace std

#endif

// Upstream's host code asks the device for the size of its waves. Arguments and grids are made for
// waves of 64, without a device: HIP is loaded when it is needed.
#include <hip/hip_runtime.h>

#undef hipGetDevice
#define hipGetDevice(device) hipErrorNoDevice
#undef hipGetDeviceProperties
#define hipGetDeviceProperties(properties, device) hipErrorNoDevice
