// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Files of HTTP(S) servers, by the libcurl that the machine has: its proxies (http_proxy,
// NO_PROXY), its certificates, and its user's ~/.netrc count as they do for curl.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// Names the file of libcurl.
inline constexpr char kCurlVariable[] = "AITER_ATTN_CURL_LIBRARY";

struct DownloadLimits {
  std::chrono::milliseconds connect = std::chrono::seconds(10);
  std::chrono::milliseconds whole = std::chrono::seconds(60);  // with all attempts
  uint64_t bytes = kMostObjectBytes;
  int attempts = 3;  // a transfer that breaks off goes on where it was
};

// Safe to call from several threads.
class Downloader {
 public:
  virtual ~Downloader() = default;
  // The file's bytes; nothing where the server says that it has no such file (404, 410). Redirects
  // are followed to http and https alone. Throws Status::kDriver for all else, and
  // Status::kInterrupted where the thread's interrupt says so.
  virtual std::optional<Bytes> get(const std::string& url, const DownloadLimits& limits) const = 0;
};

// Opens libcurl: the file that AITER_ATTN_CURL_LIBRARY names, else the one that the process has
// loaded, else the system's. Throws Status::kDriver with the reason and the next step.
std::unique_ptr<Downloader> open_curl(const std::string& user_agent);

}  // namespace AITER_ATTN_NAMESPACE::runtime
