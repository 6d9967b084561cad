// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/new_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "aiter/runtime/error.h"
#include "aiter/runtime/store/file.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// A file that is locked. The lock lasts as long as any process has the open file: so that it ends
// with this process, children that are forked meanwhile close it, and then have none.
class NewFile::Lock {
 public:
  Lock() {
    const std::lock_guard<std::mutex> lock(all().mutex);
    all().files.insert(this);
  }
  ~Lock() {
    const std::lock_guard<std::mutex> lock(all().mutex);
    all().files.erase(this);
    file_.reset();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void open(const std::string& path) {
    const std::lock_guard<std::mutex> lock(all().mutex);
    file_.emplace(path, O_RDWR | O_CREAT);
  }
  void close() {
    const std::lock_guard<std::mutex> lock(all().mutex);
    file_.reset();
  }
  explicit operator bool() const { return file_ && *file_; }
  int get() const { return file_ ? file_->get() : -1; }

 private:
  struct All {
    std::mutex mutex;  // held while a child is forked: it gets no file that is not in files
    std::set<Lock*> files;
  };
  static All& all() {
    static auto* const all = new All;
    return *all;
  }
  static int watch_forks() noexcept {
    return pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); },
                          [] {
                            for (Lock* file : all().files) file->file_.reset();
                            all().mutex.unlock();
                          });
  }
  // When the library is loaded: later, another thread may fork meanwhile.
  [[maybe_unused]] static inline const int fork_watch_ = watch_forks();

  std::optional<File> file_;
};

NewFile::NewFile(std::string path) : path_(std::move(path)), lock_(std::make_unique<Lock>()) {}

NewFile::~NewFile() {
  if (!*lock_) return;
  if (!published_) ::unlink(path_.c_str());
  // Said in full: a child that was not made by fork() still has the file open.
  ::flock(lock_->get(), LOCK_UN);
}

bool NewFile::acquire(std::chrono::milliseconds patience) {
  if (open_and_lock(std::chrono::steady_clock::now() + patience, patience)) return true;
  lock_->close();
  return false;
}

bool NewFile::publish(const void* header, size_t header_size, const Bytes& bytes,
                      const std::string& target) {
  if (!*lock_) return false;
  const int fd = lock_->get();
  if (::ftruncate(fd, 0) != 0 || (header && !write_all(fd, header, header_size)) ||
      !write_all(fd, bytes.data(), bytes.size()) || ::fsync(fd) != 0) {
    return fail_by("write");
  }
  if (::rename(path_.c_str(), target.c_str()) != 0) return fail_by("rename");
  return published_ = true;
}

bool NewFile::open_and_lock(std::chrono::steady_clock::time_point deadline,
                            std::chrono::milliseconds patience) {
  while (true) {
    lock_->open(path_);
    if (!*lock_) return fail_by("open");
    struct stat held, named;
    if (::fstat(lock_->get(), &held) != 0) return fail_by("fstat");
    if (!S_ISREG(held.st_mode) || held.st_uid != ::geteuid() || !is_trusted(held) ||
        held.st_nlink > 1) {
      error_ = distrust(path_);
      return false;
    }
    if (!lock(deadline, patience)) return false;
    // A maker that had it before has renamed or removed it: then this is another file.
    if (::stat(path_.c_str(), &named) == 0 && held.st_ino == named.st_ino) return true;
  }
}

bool NewFile::lock(std::chrono::steady_clock::time_point deadline,
                   std::chrono::milliseconds patience) {
  while (::flock(lock_->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      fail_by("lock");
      ::unlink(path_.c_str());  // no process can lock it: it has no owner
      return false;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      error_ = concat("another process has held the lock of '", utf8(path_), "' for ",
                      patience.count(), " ms; end it if it hangs");
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

bool NewFile::fail_by(const char* call) {
  error_ = failure(call, path_, errno);
  return false;
}

std::string failure(const char* call, const std::string& path, int error) {
  const char* remedy = "mend that";
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      remedy = "make room there";
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      remedy = "give this user the right to write there";
      break;
    case ENOENT:
      remedy = "make its parent a folder that takes files";
      break;
    case ENOTDIR:
      remedy = "remove the file that stands in a folder's place";
      break;
    default:
      break;
  }
  return concat("cannot ", call, " '", utf8(path), "': ", std::strerror(error), "; ", remedy);
}

std::string distrust(const std::string& path) {
  return concat("'", utf8(path), "' belongs to another user, or others may write to it",
                "; make it this user's alone");
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
