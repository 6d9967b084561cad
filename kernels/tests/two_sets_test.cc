// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// That it links is the test: no symbol of one set's launch functions is another's too.
int main() { return 0; }
