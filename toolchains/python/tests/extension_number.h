// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#pragma once

int extension_number(void);
