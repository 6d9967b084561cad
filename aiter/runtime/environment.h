// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The environment's variables, read in this one place.
#pragma once

#include <cstdlib>
#include <string>

namespace AITER_ATTN_NAMESPACE::runtime {

// "" where the variable is not set. Variables name files to load and folders to write to, so none
// counts in a program that has more rights than its user (setuid, setgid, file capabilities).
inline std::string variable(const char* name) {
  const char* value = ::secure_getenv(name);
  return value ? value : "";
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
