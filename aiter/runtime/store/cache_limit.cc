// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/cache_limit.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/store/digest.h"
#include "aiter/runtime/store/file.h"
#include "aiter/runtime/store/new_file.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// A kernel has some 10 KB to some 100 KB: less than this is a mistake in the unit.
constexpr uint64_t kLeastCacheSize = uint64_t{1} << 20;

// "512M" -> its bytes. Whether it is a size.
bool parse_size(std::string_view text, uint64_t* size) {
  constexpr std::string_view kUnits = "KMGT";
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0) return false;
  *size = 0;
  for (const char digit : text.substr(0, digits)) {
    if (__builtin_mul_overflow(*size, 10, size)) return false;
    if (__builtin_add_overflow(*size, digit - '0', size)) return false;
  }
  const std::string_view unit = text.substr(digits);
  if (unit.empty()) return true;
  const size_t power = kUnits.find(unit[0]);
  return unit.size() == 1 && power != kUnits.npos &&
         !__builtin_mul_overflow(*size, uint64_t{1} << (10 * (power + 1)), size);
}

// Whether a file is named as one of this cache's.
bool is_named(std::string_view name, std::string_view suffix) {
  constexpr size_t kKeySize = 2 * sizeof(Digest);
  return name.size() == kKeySize + suffix.size() && name.substr(kKeySize) == suffix &&
         name.substr(0, kKeySize).find_first_not_of("0123456789abcdef") == name.npos;
}

bool is_own_file(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
}

// Whether a file is one that a maker writes (new_file.h).
bool is_written(std::string_view name) {
  constexpr size_t kDigits = 1 + 16;
  return name.size() > kDigits && name[name.size() - kDigits] == '.' &&
         is_named(name.substr(0, name.size() - kDigits), kNewSuffix);
}

// Removes such a file unless its maker is still at it: has it locked, or is not a day old where
// there are no locks.
void remove_left_behind(const std::string& path) {
  constexpr time_t kMostSeconds = 86400;  // of a compile, too
  const File file(path, O_RDWR);
  struct stat status;
  if (!file || ::fstat(file.get(), &status) != 0 || !is_own_file(status)) return;
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 &&
      (errno == EWOULDBLOCK || status.st_mtime + kMostSeconds > ::time(nullptr))) {
    return;
  }
  ::unlink(path.c_str());
}

struct Object {
  std::string path;  // without the suffix
  struct stat status;

  // Then by name: whoever looks, the order is the same.
  auto order() const { return std::tie(status.st_mtim.tv_sec, status.st_mtim.tv_nsec, path); }
};

// Whether it is gone.
bool remove(const Object& object) {
  // No process publishes it meanwhile.
  NewFile lock(concat(object.path, kNewSuffix));
  if (!lock.acquire(std::chrono::milliseconds(0))) return false;
  const std::string path = concat(object.path, kObjectSuffix);
  Object now = object;
  if (::lstat(path.c_str(), &now.status) != 0) return errno == ENOENT;
  const bool unused = now.status.st_ino == object.status.st_ino && now.order() == object.order();
  return unused && ::unlink(path.c_str()) == 0;
}

}  // namespace

uint64_t cache_max_size() {
  const std::string value = variable(kCacheSizeVariable);
  if (value.empty()) return kDefaultCacheSize;
  uint64_t size = 0;
  if (parse_size(value, &size) && size >= kLeastCacheSize) return size;
  fail(Status::kInvalidArgument, kCacheSizeVariable, " is '", utf8(value),
       "'; it may be a whole number of bytes, or of K, M, G or T (1024 bytes, and so on), from 1M ",
       "on: 512M, for example");
}

void mark_as_used(int fd) {
  // The time of the last access is kept by few file systems. A file of another user's keeps its
  // time, and is not make_room()'s to remove.
  const timespec times[] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
  static_cast<void>(::futimens(fd, times));
}

void make_room(const std::string& folder, uint64_t max_size) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(folder.c_str()), ::closedir);
  if (!listing) return;
  std::vector<Object> objects;
  std::vector<Object> refused;
  std::vector<std::string> unfinished;
  uint64_t size = 0;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    const std::string path = concat(folder, "/", name);
    if (is_named(name, kNewSuffix)) {
      unfinished.push_back(path);
      continue;
    }
    if (is_written(name)) remove_left_behind(path);
    struct stat status;
    if ((is_named(name, kRefusedSuffix) || is_named(name, kFailedSuffix)) &&
        ::lstat(path.c_str(), &status) == 0) {
      refused.push_back({path, status});
      size += static_cast<uint64_t>(status.st_size);
      continue;
    }
    if (!is_named(name, kObjectSuffix) || ::lstat(path.c_str(), &status) != 0 ||
        !is_own_file(status)) {
      continue;
    }
    objects.push_back({path.substr(0, path.size() - kObjectSuffix.size()), status});
    size += static_cast<uint64_t>(status.st_size);
  }
  for (const std::string& path : unfinished) {
    NewFile left_behind(path);
    left_behind.acquire(std::chrono::milliseconds(0));  // locked: no process makes it; removed
  }
  for (const Object& object : refused) {
    if (size <= max_size) return;
    if (::unlink(object.path.c_str()) == 0) size -= static_cast<uint64_t>(object.status.st_size);
  }
  std::sort(objects.begin(), objects.end(),
            [](const Object& a, const Object& b) { return a.order() < b.order(); });
  for (const Object& object : objects) {
    if (size <= max_size) return;
    if (remove(object)) size -= static_cast<uint64_t>(object.status.st_size);
  }
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
