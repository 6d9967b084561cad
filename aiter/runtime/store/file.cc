// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace AITER_ATTN_NAMESPACE::runtime {

File::File(const std::string& path, int flags, Links links)
    : fd_(::open(path.c_str(),
                 flags | O_CLOEXEC | O_NONBLOCK | (links == Links::kRefused ? O_NOFOLLOW : 0),
                 0600)) {}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

bool read_all(int fd, void* data, size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::read(fd, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool read_all_at(int fd, void* data, size_t size, uint64_t offset) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::pread(fd, at, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

bool write_all(int fd, const void* data, size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t done = ::write(fd, at, size);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    at += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

namespace {

bool has_trusted_owner(const struct stat& status) {
  return status.st_uid == ::geteuid() || status.st_uid == 0;
}

}  // namespace

bool is_trusted(const struct stat& status) {
  return has_trusted_owner(status) && !(status.st_mode & (S_IWGRP | S_IWOTH));
}

bool is_trusted_folder(const struct stat& status) {
  return is_trusted(status) || (has_trusted_owner(status) && (status.st_mode & S_ISVTX));
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
