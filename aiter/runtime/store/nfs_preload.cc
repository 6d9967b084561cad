// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// For LD_PRELOAD: a file system of a network that has no locks, and whose renames come late. With
// NFS_LOCKS=1 it has locks, of which other machines know nothing: each process gets all.
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

extern "C" {

int flock(int, int) noexcept {
  if (std::getenv("NFS_LOCKS")) return 0;
  errno = ENOLCK;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  static auto* const call =
      reinterpret_cast<int (*)(const char*, const char*)>(dlsym(RTLD_NEXT, "rename"));
  usleep(static_cast<useconds_t>(getpid() % 7) * 20000);
  return call(from, to);
}

}  // extern "C"
