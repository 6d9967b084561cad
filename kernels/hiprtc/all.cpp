// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// All that a kernel's source can include, of every pipeline: what it reads of the C++ library and
// of HIP is what hipRTC is given of them.
#include "ck_tile/ops/fmha.hpp"
#include "fmha_bwd.hpp"
#include "fmha_fwd.hpp"
#include "fmha_fwd_v3_impl.hpp"
