// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The functions of glibc by which a shared object that is linked with a newer one would need that:
// under versions that glibc 2.17 has, or written with others. All are hidden: an object that is
// linked with this file calls them in place of glibc's, and no other object does.
//
// glibc 2.34 moved libdl and libpthread into libc, where their functions have a new version beside
// the old one. 2.33 made functions of stat's macros; 2.29 gave exp and log another version, which
// sets no errno in a mode that is not POSIX's.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OLDER(type, name, version, parameters, arguments)       \
  type older_##name parameters;                                 \
  __asm__(".symver older_" #name ", " #name "@GLIBC_" version); \
  type name parameters { return older_##name arguments; }

double exp(double);
double log(double);
int __pthread_key_create(pthread_key_t*, void (*)(void*));

OLDER(double, exp, "2.2.5", (double x), (x))
OLDER(double, log, "2.2.5", (double x), (x))

OLDER(void*, dlopen, "2.2.5", (const char* file, int mode), (file, mode))
OLDER(void*, dlsym, "2.2.5", (void* handle, const char* name), (handle, name))
OLDER(char*, dlerror, "2.2.5", (void), ())
OLDER(int, dladdr, "2.2.5", (const void* address, Dl_info* info), (address, info))
OLDER(int, dlinfo, "2.3.3", (void* handle, int request, void* answer), (handle, request, answer))

OLDER(int, pthread_create, "2.2.5",
      (pthread_t * thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument),
      (thread, attributes, start, argument))
OLDER(int, pthread_join, "2.2.5", (pthread_t thread, void** result), (thread, result))
OLDER(int, pthread_detach, "2.2.5", (pthread_t thread), (thread))
OLDER(int, pthread_mutex_trylock, "2.2.5", (pthread_mutex_t * mutex), (mutex))
OLDER(int, pthread_mutex_timedlock, "2.2.5", (pthread_mutex_t * mutex, const struct timespec* end),
      (mutex, end))
OLDER(int, pthread_once, "2.2.5", (pthread_once_t * once, void (*function)(void)), (once, function))
OLDER(int, pthread_key_create, "2.2.5", (pthread_key_t * key, void (*destroy)(void*)),
      (key, destroy))
OLDER(int, __pthread_key_create, "2.2.5", (pthread_key_t * key, void (*destroy)(void*)),
      (key, destroy))
OLDER(int, pthread_key_delete, "2.2.5", (pthread_key_t key), (key))
OLDER(void*, pthread_getspecific, "2.2.5", (pthread_key_t key), (key))
OLDER(int, pthread_setspecific, "2.2.5", (pthread_key_t key, const void* value), (key, value))
OLDER(void, __pthread_register_cancel, "2.3.3", (__pthread_unwind_buf_t * buffer), (buffer))
OLDER(void, __pthread_unregister_cancel, "2.3.3", (__pthread_unwind_buf_t * buffer), (buffer))

// The version of struct stat that x86-64 has always had.
#define STAT_VERSION 1
int __xstat(int version, const char* path, struct stat* status);
int __lxstat(int version, const char* path, struct stat* status);
int __fxstat(int version, int file, struct stat* status);

int stat(const char* path, struct stat* status) { return __xstat(STAT_VERSION, path, status); }
int lstat(const char* path, struct stat* status) { return __lxstat(STAT_VERSION, path, status); }
int fstat(int file, struct stat* status) { return __fxstat(STAT_VERSION, file, status); }

// 2.25's, which is a call of the kernel since Linux 3.17.
ssize_t getrandom(void* bytes, size_t count, unsigned int flags) {
  return syscall(SYS_getrandom, bytes, count, flags);
}

// 2.32's hint for atomic operations that may be left out: none may.
char __libc_single_threaded = 0;

// Two functions of newer glibcs have a replacement here, for an older one. They are looked for when
// the object is loaded: the loader's lock, which dlsym() takes, and dl_iterate_phdr(), may be held
// for ever in the child of a process whose threads were in the loader when it forked.
int older_cond_clockwait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
int older_dl_find_object(void*, struct dl_find_object*);
static int (*cond_clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t,
                             const struct timespec*) = older_cond_clockwait;
static int (*find_object)(void*, struct dl_find_object*) = older_dl_find_object;

// 2.30's wait until a time of a given clock, where there is none. A condition variable waits by
// the real-time clock then, which somebody may set: a wait ends after a second at the latest, as a
// wait may without a reason, and its caller looks at its own clock and waits again.
static const int64_t kSecond = 1000000000;

static int64_t nanoseconds(const struct timespec* time) {
  return time->tv_sec * kSecond + time->tv_nsec;
}

int older_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                         const struct timespec* end) {
  struct timespec now, real;
  if (end->tv_nsec < 0 || end->tv_nsec >= kSecond) return EINVAL;
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &real) != 0) return EINVAL;
  int64_t left = end->tv_sec - now.tv_sec > 2 ? 2 * kSecond : nanoseconds(end) - nanoseconds(&now);
  const int all = left <= kSecond;
  if (!all) left = kSecond;
  if (left < 0) left = 0;
  const int64_t until = nanoseconds(&real) + left;
  const struct timespec deadline = {.tv_sec = until / kSecond, .tv_nsec = until % kSecond};
  const int status = pthread_cond_timedwait(condition, mutex, &deadline);
  return status == ETIMEDOUT && !all ? 0 : status;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* end) {
  return cond_clockwait(condition, mutex, clock, end);
}

// 2.35's way of the unwinder to the tables of an address's object. It reads dlfo_eh_frame alone,
// the object's .eh_frame_hdr; the link map is left out.
struct Search {
  uintptr_t address;
  struct dl_find_object* found;
};

static int is_object(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  const struct Search* search = data;
  uintptr_t begin = UINTPTR_MAX, end = 0, tables = 0;
  int inside = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
    const uintptr_t first = info->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_GNU_EH_FRAME) tables = first;
    if (segment->p_type != PT_LOAD) continue;
    const uintptr_t last = first + segment->p_memsz;
    if (first <= search->address && search->address < last) inside = 1;
    if (first < begin) begin = first;
    if (last > end) end = last;
  }
  if (!inside || tables == 0) return 0;
  memset(search->found, 0, sizeof *search->found);
  search->found->dlfo_map_start = (void*)begin;
  search->found->dlfo_map_end = (void*)end;
  search->found->dlfo_eh_frame = (void*)tables;
  return 1;
}

int older_dl_find_object(void* address, struct dl_find_object* found) {
  struct Search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(is_object, &search) ? 0 : -1;
}

int _dl_find_object(void* address, struct dl_find_object* found) {
  return find_object(address, found);
}

__attribute__((constructor(101))) static void take_functions_of_a_newer_glibc(void) {
  void* found = dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
  if (found) memcpy(&cond_clockwait, &found, sizeof found);
  found = dlsym(RTLD_DEFAULT, "_dl_find_object");
  if (found) memcpy(&find_object, &found, sizeof found);
}
