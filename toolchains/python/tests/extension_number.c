// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "toolchains/python/tests/extension_number.h"

int extension_number(void) { return 2; }
