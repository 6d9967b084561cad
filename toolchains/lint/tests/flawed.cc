// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// Right by the compiler, but not by clang-tidy.
int main(int argc, char**) {
  if (argc > 1)
    ;
  return argc;
}
