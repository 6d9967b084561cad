// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// launch PARENT FOLDER ADDRESS_SPACE PROGRAM ARGUMENT...
//
// Runs PROGRAM in FOLDER, with so many bytes of address space for each process, and without the
// files that its parent has open. Everything in the process group of this program, which must lead
// it, is killed when the process PARENT is gone. Its exit status is PROGRAM's, or 128 and the
// signal that ended that.
//
// posix_spawn can change the folder only where glibc has 2.29, and never limits or a death signal;
// a fork would copy the page tables of a process that has a GPU's memory mapped.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMostFiles = 65536, kFailed = 127 };

static void kill_group(int number) {
  (void)number;
  kill(0, SIGKILL);
}

static int fail(const char* call, const char* name) {
  fprintf(stderr, "launch: cannot %s '%s': %s\n", call, name, strerror(errno));
  return kFailed;
}

int main(int count, char** words) {
  if (count < 5) {
    fprintf(stderr, "usage: launch PARENT FOLDER ADDRESS_SPACE PROGRAM ARGUMENT...\n");
    return kFailed;
  }
  // Otherwise it would kill those who started it from a shell.
  if (getpgrp() != getpid() && setpgid(0, 0) != 0) return fail("lead", "a process group");
  signal(SIGTERM, kill_group);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != (pid_t)strtol(words[1], NULL, 10)) return kFailed;  // it is gone already

  struct rlimit files = {0};
  getrlimit(RLIMIT_NOFILE, &files);
  const int end = files.rlim_cur < kMostFiles ? (int)files.rlim_cur : kMostFiles;
  for (int file = STDERR_FILENO + 1; file < end; ++file) close(file);
  if (chdir(words[2]) != 0) return fail("enter", words[2]);
  const rlim_t bytes = strtoull(words[3], NULL, 10);
  const struct rlimit space = {bytes, bytes};
  if (setrlimit(RLIMIT_AS, &space) != 0) return fail("limit memory to", words[3]);
  const struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);

  const pid_t child = fork();
  if (child < 0) return fail("fork for", words[4]);
  if (child == 0) {
    signal(SIGTERM, SIG_DFL);
    execv(words[4], words + 4);
    _exit(fail("run", words[4]));
  }
  int status = 0;
  while (waitpid(child, &status, 0) != child) {
    if (errno != EINTR) return fail("wait for", words[4]);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
