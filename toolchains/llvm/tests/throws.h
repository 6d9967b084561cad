// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#pragma once

// Throws std::out_of_range, for any value.
__attribute__((visibility("default"))) void ThrowOutOfRange(int value);
