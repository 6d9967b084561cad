// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Functions that libFuzzer, compiled against a newer glibc, asks the sysroot's for: C23's names of
// strtol and strtoul, which differ from the old ones in reading "0b" as well.
#include <stdlib.h>

long __isoc23_strtol(const char* text, char** end, int base) { return strtol(text, end, base); }

unsigned long __isoc23_strtoul(const char* text, char** end, int base) {
  return strtoul(text, end, base);
}
