// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "kernels/tests/foreign_user.h"

#include <foreign_objects.h>

int magic_of_first_file(void) {
  const unsigned char* const data = foreign_objects_find(foreign_objects_path(0), NULL);
  return data[0];
}
