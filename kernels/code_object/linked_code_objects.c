// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "kernels/code_object/linked_code_objects.h"

#include <stdint.h>

// The record that linked.S writes: offsets, each from its own place, and a size.
typedef struct {
  int64_t instance;
  int64_t arch;
  int64_t data;
  uint64_t size;
} Entry;

// The linker's names of the section's ends. Weak: where no code object is linked, there is none.
#define END __attribute__((weak, visibility("hidden")))
extern const Entry __start_attn_code_objects[] END;
extern const Entry __stop_attn_code_objects[] END;

static const void* at(const int64_t* offset) { return (const char*)offset + *offset; }

size_t attn_linked_code_objects(void) {
  return (size_t)((uintptr_t)__stop_attn_code_objects - (uintptr_t)__start_attn_code_objects) /
         sizeof(Entry);
}

attn_linked_code_object attn_linked_code_object_at(size_t index) {
  const Entry* const entry = __start_attn_code_objects + index;
  const attn_linked_code_object object = {
      (const char*)at(&entry->instance),
      (const char*)at(&entry->arch),
      at(&entry->data),
      (size_t)entry->size,
  };
  return object;
}
