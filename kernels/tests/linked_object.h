// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/code_object/linked_code_objects.h"

#ifdef __cplusplus
extern "C" {
#endif
size_t foreign_count(void);
attn_linked_code_object foreign_at(size_t index);
#ifdef __cplusplus
}
#endif
