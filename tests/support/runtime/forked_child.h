// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A child of this process, for tests of its inheritance.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

namespace AITER_ATTN_NAMESPACE::testing {

// The value that body returns in a forked child: a number from 0 to 255. Minus the signal that
// ended the child where one did; SIGALRM: it hung.
template <typename Body>
int in_forked_child(Body&& body) {
  constexpr unsigned kSecondsUntilItHangs = 120;
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    alarm(kSecondsUntilItHangs);
    _exit(body());
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("cannot wait for the child");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace AITER_ATTN_NAMESPACE::testing
