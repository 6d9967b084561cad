// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A shared object of somebody else's, with code objects of its own.
#include "kernels/tests/linked_object.h"

size_t foreign_count(void) { return attn_linked_code_objects(); }

attn_linked_code_object foreign_at(size_t index) { return attn_linked_code_object_at(index); }
