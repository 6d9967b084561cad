// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// Nothing is to be said of it.
int main(int argc, char**) { return argc; }
