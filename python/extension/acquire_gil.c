// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Before 3.14, CPython ends a thread that waits for the GIL of an interpreter that has ended by
// pthread_exit, which unwinds the stack. C++ frames do not survive that: a destructor on the way
// ends the process, and so does the unwinder of libstdc++ that is linked in here, when libgcc_s
// calls it before its own first exception. In C, a cleanup handler comes before all frames further
// up. So this is no C++, and must not be compiled with exceptions.
#include "python/extension/acquire_gil.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

#ifdef __EXCEPTIONS
#error "compiled with exceptions, pthread_cleanup_push is unwound by a personality routine"
#endif

static void stay(void* nothing) {
  (void)nothing;
  for (;;) pause();
}

void acquire_gil_or_stay(PyThreadState* state) {
  pthread_cleanup_push(stay, NULL);
  PyEval_RestoreThread(state);
  pthread_cleanup_pop(0);
}
