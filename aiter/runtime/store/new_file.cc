// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/new_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "aiter/runtime/error.h"
#include "aiter/runtime/fork_mutex.h"
#include "aiter/runtime/interrupt.h"
#include "aiter/runtime/store/file.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {

namespace {

// Whether there are no locks there, by the errno of flock().
bool has_no_locks(int error) { return error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS; }

constexpr std::string_view kProcess = "process ";
constexpr size_t kMostName = 128;
constexpr std::chrono::milliseconds kSoon(50);

// The line of a file that a process makes, until it has made it.
std::string this_process() {
  char host[kMostName / 2] = "a host without a name";
  if (::gethostname(host, sizeof(host)) == 0) host[sizeof(host) - 1] = '\0';
  return concat(kProcess, ::getpid(), " on ", host, "\n");
}

}  // namespace

// A file that is locked. The lock lasts as long as any process has the open file: so that it ends
// with this process, children that are forked meanwhile close it, and then have none.
class NewFile::Lock {
 public:
  Lock() {
    const std::lock_guard<ForkMutex> lock(all().mutex);
    all().files.insert(this);
  }
  ~Lock() {
    const std::lock_guard<ForkMutex> lock(all().mutex);
    all().files.erase(this);
    file_.reset();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void open(const std::string& path) {
    const std::lock_guard<ForkMutex> lock(all().mutex);
    file_.emplace(path, O_RDWR | O_CREAT);
  }
  void close() {
    const std::lock_guard<ForkMutex> lock(all().mutex);
    file_.reset();
  }
  explicit operator bool() const { return file_ && *file_; }
  int get() const { return file_ ? file_->get() : -1; }

 private:
  struct All {
    ForkMutex mutex;  // a child gets no file that is not in files
    std::set<Lock*> files;
  };
  static All& all() {
    static auto* const all = new All;
    return *all;
  }
  static int watch_forks() noexcept {
    all();
    return pthread_atfork(nullptr, nullptr, [] {
      for (Lock* file : all().files) file->file_.reset();
    });
  }
  // When the library is loaded: later, another thread may fork meanwhile.
  [[maybe_unused]] static inline const int fork_watch_ = watch_forks();

  std::optional<File> file_;
};

NewFile::NewFile(std::string path)
    : path_(std::move(path)), lock_(std::make_unique<Lock>()), own_(std::make_unique<Lock>()) {}

NewFile::~NewFile() {
  if (*own_) ::unlink(own_path_.c_str());  // it was not published
  if (!*lock_) return;
  ::unlink(path_.c_str());
  // Said in full: a child that was not made by fork() still has the file open.
  ::flock(lock_->get(), LOCK_UN);
}

bool NewFile::acquire(std::chrono::milliseconds patience, const Waits& waits) {
  try {
    if (open_and_lock(patience, waits)) return true;
  } catch (...) {
    lock_->close();
    throw;
  }
  lock_->close();
  return false;
}

bool NewFile::publish(const void* header, size_t header_size, const Bytes& bytes,
                      const std::string& target) {
  constexpr int kAttempts = 10;
  for (int attempt = 1; maker_ == ::getpid() && open_own(); ++attempt) {
    const int fd = own_->get();
    if ((header && !write_all(fd, header, header_size)) ||
        !write_all(fd, bytes.data(), bytes.size()) || ::fsync(fd) != 0) {
      return fail_by("write");
    }
    if (::rename(own_path_.c_str(), target.c_str()) == 0) {
      own_->close();
      return true;
    }
    // A machine that does not know of this one's locks took it for one that was left behind.
    if (errno != ENOENT || attempt == kAttempts) return fail_by("rename");
  }
  return false;
}

bool NewFile::open_own() {
  while (true) {
    uint64_t number = 0;
    if (::getrandom(&number, sizeof(number), 0) != sizeof(number)) return fail_by("name");
    char digits[17];
    std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(number));
    own_path_ = concat(path_, ".", digits);
    own_->open(own_path_);
    if (!*own_) return fail_by("open");
    if (::flock(own_->get(), LOCK_EX | LOCK_NB) != 0 && has_no_locks(errno)) return true;
    // Another process may have taken it for one that a killed process left, and removed it.
    struct stat held, named;
    if (::fstat(own_->get(), &held) == 0 && ::stat(own_path_.c_str(), &named) == 0 &&
        held.st_ino == named.st_ino) {
      return true;
    }
  }
}

bool NewFile::open_and_lock(std::chrono::milliseconds patience, const Waits& waits) {
  const Clock::time_point since = Clock::now();
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
    if (!lock(since, patience, waits)) return false;
    if (!*lock_) break;  // there are no locks
    // A maker that had it before has removed it: then this is another file.
    if (::stat(path_.c_str(), &named) == 0 && held.st_ino == named.st_ino) {
      // For those that wait: it is told to their users.
      const std::string name = this_process();
      static_cast<void>(::pwrite(lock_->get(), name.data(), name.size(), 0));
      break;
    }
  }
  maker_ = ::getpid();
  return true;
}

std::string NewFile::maker() const {
  char text[kMostName] = {};
  const ssize_t got = ::pread(lock_->get(), text, sizeof(text), 0);
  const std::string_view said(text, got > 0 ? static_cast<size_t>(got) : 0);
  const size_t end = said.find('\n');
  if (said.substr(0, kProcess.size()) != kProcess || end == said.npos) return "another process";
  return utf8(std::string(said.substr(0, end)));
}

bool NewFile::lock(Clock::time_point since, std::chrono::milliseconds patience,
                   const Waits& waits) {
  while (::flock(lock_->get(), LOCK_EX | LOCK_NB) != 0) {
    if (has_no_locks(errno)) {
      struct stat status;
      // Empty, it has no maker that could lock it.
      if (::fstat(lock_->get(), &status) == 0 && status.st_size == 0) ::unlink(path_.c_str());
      lock_->close();
      return true;
    }
    if (errno != EWOULDBLOCK && errno != EINTR) return fail_by("lock");
    const Clock::duration waited = Clock::now() - since;
    if (waited >= patience) {
      error_ = concat(maker(), " has held the lock of '", utf8(path_), "' for ", patience.count(),
                      " ms; end it if it hangs");
      return false;
    }
    check_interrupt();
    if (waits && !told_ && waited > std::chrono::seconds(1)) {
      told_ = true;
      waits(maker());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(waited < kSoon ? 1 : 10));
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
