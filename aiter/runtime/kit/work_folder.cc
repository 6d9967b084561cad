// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/kit/work_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// Names of work folders begin with it, so that nothing else is ever removed.
constexpr char kPrefix[] = "compile.";

int remove_entry(const char* path, const struct stat*, int, struct FTW*) {
  ::remove(path);
  return 0;
}

void remove_tree(const std::string& path) {
  constexpr int kOpenFolders = 8;
  ::nftw(path.c_str(), remove_entry, kOpenFolders, FTW_DEPTH | FTW_PHYS);
}

// Those of `place` that no process has locked.
void remove_abandoned(const std::string& place) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(place.c_str()), ::closedir);
  if (!listing) return;
  while (const dirent* entry = ::readdir(listing.get())) {
    if (std::strncmp(entry->d_name, kPrefix, sizeof(kPrefix) - 1) != 0) continue;
    const std::string path = concat(place, "/", entry->d_name);
    const File folder(path, O_RDONLY | O_DIRECTORY);
    if (folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) remove_tree(path);
  }
}

}  // namespace

WorkFolder::WorkFolder(const std::string& place) {
  if (!place.empty()) {
    ::mkdir(place.c_str(), 0700);
    struct stat status;
    if (::lstat(place.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && is_trusted(status)) {
      remove_abandoned(place);
      if (make_in(place)) return;
    }
  }
  std::string temporary = variable("TMPDIR");
  if (temporary.empty() || temporary[0] != '/') temporary = "/tmp";
  if (make_in(temporary)) return;
  fail(Status::kUnsupported, "cannot make a folder to compile in, ",
       place.empty() ? "" : concat("neither in '", utf8(place), "' nor "), "in '", utf8(temporary),
       "': ", std::strerror(errno), "; name a folder that can be written to in ", "TMPDIR");
}

WorkFolder::~WorkFolder() { remove_tree(path_); }

bool WorkFolder::make_in(const std::string& place) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    std::string path = concat(place, "/", kPrefix, "XXXXXX");
    if (!::mkdtemp(path.data())) return false;
    auto folder = std::make_unique<const File>(path, O_RDONLY | O_DIRECTORY);
    // Where no lock can be had at all, it is not taken for abandoned either.
    const bool taken =
        !*folder || (::flock(folder->get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK);
    // Whoever removes abandoned ones may have seen it before it was locked.
    struct stat opened, named;
    if (!taken && ::fstat(folder->get(), &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
        opened.st_ino == named.st_ino) {
      path_ = path;
      lock_ = std::move(folder);
      return true;
    }
    errno = EAGAIN;
  }
  return false;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
