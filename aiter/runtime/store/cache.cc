// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/cache.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "aiter/runtime/error.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr char kCacheVariable[] = "AITER_ATTN_CACHE_DIR";
constexpr char kMagic[8] = {'A', 'T', 'T', 'N', 'O', 'B', 'J', '1'};

struct Header {
  char magic[sizeof(kMagic)];
  Digest key;
  Digest sha256;
  uint64_t size;
};
static_assert(sizeof(Header) == 80);

class File {
 public:
  // Others may have put a link there, or a pipe, which would have no end.
  File(const std::string& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  int fd_;
};

// A file that is locked. The lock lasts as long as any process has the open file: so that it ends
// with this process, children that are forked meanwhile close it, and then have none.
class LockFile {
 public:
  LockFile() {
    const std::lock_guard<std::mutex> lock(all().mutex);
    all().files.insert(this);
  }
  ~LockFile() {
    const std::lock_guard<std::mutex> lock(all().mutex);
    all().files.erase(this);
    file_.reset();
  }
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

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
    std::set<LockFile*> files;
  };
  static All& all() {
    static auto* const all = new All;
    return *all;
  }
  static int watch_forks() noexcept {
    return pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); },
                          [] {
                            for (LockFile* file : all().files) file->file_.reset();
                            all().mutex.unlock();
                          });
  }
  // When the library is loaded: later, another thread may fork meanwhile.
  [[maybe_unused]] static inline const int fork_watch_ = watch_forks();

  std::optional<File> file_;
};

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

// With its parents, for this user alone. Whether that worked, shows when a file is made in it.
void make_folder(const std::string& folder) {
  for (size_t end = folder.find('/', 1); end != folder.npos; end = folder.find('/', end + 1)) {
    ::mkdir(folder.substr(0, end).c_str(), 0700);
  }
  ::mkdir(folder.c_str(), 0700);
}

// Whether only this user, or root, which may do anyhow what it likes, says what is in it. Images
// have folders of root's.
bool is_trusted(const struct stat& status) {
  return (status.st_uid == ::geteuid() || status.st_uid == 0) &&
         !(status.st_mode & (S_IWGRP | S_IWOTH));
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

std::string user_cache_folder() {
  constexpr char kFolder[] = "/code-objects";
  if (const std::string named = variable(kCacheVariable); !named.empty()) {
    if (named[0] == '/') return named + kFolder;
    fail(Status::kInvalidArgument, kCacheVariable, " is '", utf8(named),
         "', but must be an absolute path: the working directory differs between processes");
  }
  // The standard for it has relative paths ignored.
  if (const std::string xdg = variable("XDG_CACHE_HOME"); xdg.substr(0, 1) == "/") {
    return xdg + "/aiter-attn" + kFolder;
  }
  if (const std::string home = variable("HOME"); !home.empty()) {
    return home + "/.cache/aiter-attn" + kFolder;
  }
  return "";
}

// Who may write KEY.new, or why nobody can; or that another process was not done in time.
class CacheProvider::Writer {
 public:
  Writer(const CacheProvider& cache, const Digest& key)
      : path_(cache.path(key, ".new")),
        target_(cache.path(key, ".object")),
        key_(key),
        patience_(cache.options_.patience) {
    make_folder(cache.options_.folder);
    if (!trusts(cache.options_.folder)) return;
    if (!acquire(std::chrono::steady_clock::now() + patience_)) file_.close();
  }
  ~Writer() {
    if (!file_) return;
    if (!published_) ::unlink(path_.c_str());
    // Said in full: a child that was not made by fork() still has the file open.
    ::flock(file_.get(), LOCK_UN);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Why nothing can be written; "" if something can.
  const std::string& error() const { return error_; }

  // Whether the object is kept.
  bool publish(const Bytes& bytes) {
    if (!file_) return false;
    Header header = {};
    std::memcpy(header.magic, kMagic, sizeof(kMagic));
    header.key = key_;
    header.sha256 = sha256(bytes.data(), bytes.size());
    header.size = bytes.size();
    const int fd = file_.get();
    if (::ftruncate(fd, 0) != 0 || !write_all(fd, &header, sizeof(header)) ||
        !write_all(fd, bytes.data(), bytes.size()) || ::fsync(fd) != 0) {
      fail_by("write");
    } else if (::rename(path_.c_str(), target_.c_str()) != 0) {
      fail_by("rename");
    } else {
      published_ = true;
    }
    return published_;
  }

 private:
  // In a sticky folder, such as /tmp, others make files, but do not rename this user's.
  bool trusts(const std::string& folder) {
    struct stat status;
    if (::stat(folder.c_str(), &status) != 0) return true;  // opening the file says why
    return is_trusted(status) || (status.st_mode & S_ISVTX) || distrust(folder);
  }

  // false: it cannot be had, or not in time.
  bool acquire(std::chrono::steady_clock::time_point deadline) {
    while (true) {
      file_.open(path_);
      if (!file_) return fail_by("open");
      struct stat held, named;
      if (::fstat(file_.get(), &held) != 0) return fail_by("fstat");
      if (!S_ISREG(held.st_mode) || held.st_uid != ::geteuid() || !is_trusted(held) ||
          held.st_nlink > 1) {
        return distrust(path_);
      }
      if (!lock(deadline)) return false;
      // A writer that had it before has renamed or removed it: then this is another file.
      if (::stat(path_.c_str(), &named) == 0 && held.st_ino == named.st_ino) return true;
    }
  }

  bool lock(std::chrono::steady_clock::time_point deadline) {
    while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) {
        fail_by("lock");
        ::unlink(path_.c_str());  // where nobody can lock it, it is nobody's
        return false;
      }
      if (std::chrono::steady_clock::now() >= deadline) {
        error_ = concat("another process has held the lock of '", utf8(path_), "' for ",
                        patience_.count(), " ms; end it if it hangs");
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  bool fail_by(const char* call) {
    error_ = concat("cannot ", call, " '", utf8(path_), "': ", std::strerror(errno),
                    "; make room there");
    return false;
  }
  bool distrust(const std::string& path) {
    error_ = concat("'", utf8(path), "' belongs to another user, or others may write to it",
                    "; make it this user's alone");
    return false;
  }

  const std::string path_, target_;
  const Digest key_;
  const std::chrono::milliseconds patience_;
  LockFile file_;
  bool published_ = false;
  std::string error_;
};

CacheProvider::CacheProvider(CacheOptions options, std::unique_ptr<Provider> maker)
    : options_(std::move(options)), maker_(std::move(maker)) {}

CacheProvider::~CacheProvider() = default;

std::string CacheProvider::name() const {
  if (options_.folder.empty()) return maker_->name();
  return concat(maker_->name(), ", kept in '", utf8(options_.folder), "'");
}

std::string CacheProvider::path(const Digest& key, const char* suffix) const {
  return options_.folder + "/" + hex(key) + suffix;
}

CacheProvider::Entry& CacheProvider::entry(const Digest& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<Entry>& entry = entries_[key];
  if (!entry) entry = std::make_unique<Entry>();
  return *entry;
}

std::optional<Bytes> CacheProvider::get(const CodeObjectRef& ref) {
  Entry& entry = this->entry(ref.key);
  const std::lock_guard<std::mutex> lock(entry.mutex);
  if (entry.error) std::rethrow_exception(entry.error);
  if (entry.unkept) return entry.unkept;
  if (options_.folder.empty()) return entry.unkept = make(ref, entry);
  if (std::optional<Bytes> bytes = read(ref)) return bytes;

  Writer writer(*this, ref.key);
  // Another process may have been faster.
  if (std::optional<Bytes> bytes = read(ref)) return bytes;
  std::optional<Bytes> bytes = make(ref, entry);
  if (bytes && !writer.publish(*bytes)) entry.unkept = bytes;
  if (!writer.error().empty()) warn_once(writer.error());
  return bytes;
}

std::optional<Bytes> CacheProvider::make(const CodeObjectRef& ref, Entry& entry) {
  try {
    return maker_->get(ref);
  } catch (const Error& error) {
    if (error.status() == Status::kInternal) entry.error = std::current_exception();
    throw;
  }
}

std::optional<Bytes> CacheProvider::read(const CodeObjectRef& ref) const {
  const File file(path(ref.key, ".object"), O_RDONLY);
  if (!file) return std::nullopt;
  Header header;
  struct stat status;
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || !is_trusted(status) ||
      !read_all(file.get(), &header, sizeof(header)) ||
      std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.key != ref.key ||
      // The size is believed only where the file has it.
      header.size != static_cast<uint64_t>(status.st_size) - sizeof(header)) {
    return std::nullopt;
  }
  Bytes bytes(header.size);
  if (!read_all(file.get(), bytes.data(), bytes.size())) return std::nullopt;
  const Digest digest = sha256(bytes.data(), bytes.size());
  if (digest != header.sha256 || (ref.sha256 && digest != *ref.sha256)) return std::nullopt;
  return bytes;
}

void CacheProvider::warn_once(const std::string& reason) {
  if (warned_.exchange(true)) return;
  const std::string line = concat("aiter-attn: kernels compiled at run time are not kept: ", reason,
                                  ", or name another folder in ", kCacheVariable);
  if (options_.warn) return options_.warn(line);
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
