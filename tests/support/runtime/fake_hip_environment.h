// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Settings of a stand-in for HIP by environment variables: lists, and failures of its functions.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace fake_hip {

// The parts of a variable's value, by comma; of `otherwise` where it is not set.
inline std::vector<std::string> listed(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  const std::string text = value ? value : otherwise;
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// The error that a variable of FUNCTION=ERROR[,FUNCTION=ERROR...] wants of a function, or 0.
inline int asked_failure(const char* variable, const std::string& function) {
  for (const std::string& entry : listed(variable, "")) {
    if (entry.compare(0, function.size() + 1, function + "=") == 0) {
      return std::stoi(entry.substr(function.size() + 1));
    }
  }
  return 0;
}

}  // namespace fake_hip
