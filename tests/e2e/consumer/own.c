/* Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
 *
 * The project's kernel, linked in, is the one that it embeds by its file's name. */
#include <objects.h>
#include <stdio.h>
#include <string.h>

#include "kernels/code_object/linked_code_objects.h"

int main(void) {
  size_t size = 0;
  const void* const data = objects_find("hsa/gfx942/own/fill.co", &size);
  if (attn_linked_code_objects() != 1 || objects_count() != 1 || !data) return 2;
  const attn_linked_code_object linked = attn_linked_code_object_at(0);
  if (linked.size != size || memcmp(linked.data, data, size) != 0) return 3;
  printf("%s %s\n", linked.instance, linked.arch);
  return 0;
}
