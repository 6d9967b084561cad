/* Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
 *
 * The code objects that a program or a shared object is linked with: those of the cc_library
 * targets INSTANCE.ARCH.library and SET:ARCH.library among its dependencies, and no others. For
 * programs that load some kernels by themselves; the library has its own in a pack.
 */
#ifndef KERNELS_CODE_OBJECT_LINKED_CODE_OBJECTS_H_
#define KERNELS_CODE_OBJECT_LINKED_CODE_OBJECTS_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const char* instance; /* also the kernel's symbol */
  const char* arch;     /* gfx942 */
  const void* data;     /* the code object, an ELF file, 16-byte aligned: for hipModuleLoadData */
  size_t size;
} attn_linked_code_object;

/* The number that the calling program, or shared object, is linked with. */
__attribute__((visibility("hidden"))) size_t attn_linked_code_objects(void);

/* index < attn_linked_code_objects(). The order is the linker's. Memory is never released. */
__attribute__((visibility("hidden"))) attn_linked_code_object
attn_linked_code_object_at(size_t index);

#ifdef __cplusplus
}
#endif

#endif /* KERNELS_CODE_OBJECT_LINKED_CODE_OBJECTS_H_ */
