# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which files of the sysroot's packages are used.

Every compile has the headers as inputs: what this project cannot need (headers of file systems,
sound, old libstdc++ extensions, sanitizer libraries) is left out. libstdc++ and libgcc are
there as archives only, so that no link can choose the shared ones.
"""

load("//toolchains/versions:llvm.bzl", "GCC")

_LINUX_HEADERS = [
    "byteorder/*",
    "close_range.h",
    "const.h",
    "errno.h",
    "falloc.h",
    "fs.h",
    "fscrypt.h",
    "futex.h",
    "ioctl.h",
    "kernel.h",
    "limits.h",
    "memfd.h",
    "mman.h",
    "mount.h",
    "param.h",
    "perf_event.h",
    "posix_types.h",
    "prctl.h",
    "random.h",
    "sched.h",
    "sched/*",
    "stat.h",
    "stddef.h",
    "swab.h",
    "sysinfo.h",
    "time.h",
    "time_types.h",
    "types.h",
    "unistd.h",
    "userfaultfd.h",
    "version.h",
    "wait.h",
]

_SHARED_LIBRARIES = [
    "ld-linux-x86-64.so.2",
    "libanl.so*",
    "libc.so*",
    "libcrypt.so*",
    "libdl.so*",
    "libm.so*",
    "libmvec.so*",
    "libpthread.so*",
    "libresolv.so*",
    "librt.so*",
    "libutil.so*",
]

# Globs of what a compile may include.
HEADERS = [
    "usr/include/*.h",
    "usr/include/arpa/*",
    "usr/include/asm-generic/*",
    "usr/include/c++/**",
    "usr/include/net/*",
    "usr/include/netinet/*",
    "usr/include/rpc/*",
    "usr/include/x86_64-linux-gnu/**",
] + ["usr/include/linux/" + header for header in _LINUX_HEADERS]

# Globs of what even HEADERS' folders need not hold.
UNUSED_HEADERS = [
    "usr/include/c++/%s/%s/**" % (GCC, folder)
    for folder in ["decimal", "experimental", "ext/pb_ds", "parallel", "tr2"]
] + ["usr/include/x86_64-linux-gnu/c++/%s/ext/**" % GCC]

# GCC's own start files and libraries.
GCC_FOLDER = "usr/lib/gcc/x86_64-linux-gnu/%s/" % GCC

# Globs of glibc's own archives, for programs that have to run where there is no such system.
STATIC_LIBRARIES = [
    "usr/lib/x86_64-linux-gnu/libc.a",
    "usr/lib/x86_64-linux-gnu/libm.a",
    "usr/lib/x86_64-linux-gnu/libm-*.a",
    "usr/lib/x86_64-linux-gnu/libmvec.a",
]

# Shell patterns ("*" matches "/" too) of the files that are unpacked.
SYSROOT_KEEP = [
    "lib64/ld-linux-x86-64.so.2",
    "usr/include/*",
    GCC_FOLDER + "crt*.o",
    GCC_FOLDER + "libatomic.a",
    GCC_FOLDER + "libgcc.a",
    GCC_FOLDER + "libgcc_eh.a",
    GCC_FOLDER + "libstdc++.a",
    GCC_FOLDER + "libsupc++.a",
    # glibc's own: start files, the part of libc that is always linked statically, and the
    # empty archives that -ldl, -lpthread, -lrt and -lutil stand for since glibc 2.34.
    "usr/lib/x86_64-linux-gnu/*crt*.o",
    "usr/lib/x86_64-linux-gnu/libc_nonshared.a",
    "usr/lib/x86_64-linux-gnu/libdl.a",
    "usr/lib/x86_64-linux-gnu/libpthread.a",
    "usr/lib/x86_64-linux-gnu/librt.a",
    "usr/lib/x86_64-linux-gnu/libutil.a",
    "usr/share/doc/*/copyright",
] + [
    folder + "/" + library
    for library in _SHARED_LIBRARIES
    for folder in ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"]
] + STATIC_LIBRARIES
