// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "kernels/code_object/linked_code_objects.h"

// A program without code objects links, and has none.
int main() { return attn_linked_code_objects() == 0 ? 0 : 1; }
