// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/interrupt.h"
#include "aiter/runtime/store/cached_file.h"
#include "aiter/runtime/store/file.h"
#include "aiter/runtime/store/new_file.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// With its parents, for this user alone. Why it could not be made; "": it is there.
std::string make_folder(const std::string& folder) {
  std::string error;
  for (size_t end = 0; end != folder.npos && error.empty();) {
    end = folder.find('/', end + 1);
    const std::string level = folder.substr(0, end);
    if (::mkdir(level.c_str(), 0700) == 0) continue;
    const int number = errno;
    // A file system may refuse a folder that is there with another error than that.
    if (number == EEXIST || ::access(level.c_str(), F_OK) == 0) continue;
    error = failure("make the folder", level, number);
  }
  return error;
}

}  // namespace

std::string user_cache_folder() {
  constexpr char kFolder[] = "/code-objects";
  const auto named = [](const char* name) {
    std::string folder = variable(name);
    if (folder.empty() || folder[0] == '/') return folder;
    fail(Status::kInvalidArgument, name, " is '", utf8(folder),
         "', but must be an absolute path: the working directory differs between processes");
  };
  if (const std::string own = named(kCacheVariable); !own.empty()) return own + kFolder;
  // Beside ck-jit's own files.
  if (const std::string others = named(kCkJitCacheVariable); !others.empty()) {
    return others + "/aiter-attn" + kFolder;
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

// The right to write KEY.new; or the reason why no process can, or that another was not done in
// time.
class CacheProvider::Writer {
 public:
  Writer(const CacheProvider& cache, const CodeObjectRef& ref)
      : cache_(cache), key_(ref.key), file_(cache.path(key_, kNewSuffix)) {
    const std::string& folder = cache.options_.folder;
    error_ = make_folder(folder);
    if (!error_.empty()) return;
    struct stat status;
    if (::stat(folder.c_str(), &status) == 0 && !is_trusted_folder(status)) {
      error_ = distrust(folder);
    } else {
      // It says why the folder cannot be looked at.
      file_.acquire(cache.options_.patience, [&](const std::string& maker) {
        cache.tell(concat("aiter-attn: waiting for ", maker, ", which makes ",
                          ref.name ? ref.name() : "the code object " + hex(key_)));
      });
    }
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // The reason why nothing can be written; "" if something can.
  const std::string& error() const { return error_.empty() ? file_.error() : error_; }

  // Whether the object is kept.
  bool publish(const Bytes& bytes) {
    const CachedFileHeader header = cached_file_header(key_, bytes);
    return file_.publish(&header, sizeof(header), bytes, cache_.path(key_, kObjectSuffix));
  }
  // Whether it is kept that the object cannot be made.
  bool publish_failure(const std::string& identity, const CannotMake& error) {
    const Bytes file = failure_file(identity, error.what(), error.said());
    return file_.publish(nullptr, 0, file, cache_.path(key_, kFailedSuffix));
  }

 private:
  const CacheProvider& cache_;
  const Digest key_;
  std::string error_;  // of the folder
  NewFile file_;
};

CacheProvider::CacheProvider(CacheOptions options, std::unique_ptr<Provider> maker)
    : options_(std::move(options)),
      maker_(std::move(maker)),
      added_(slack()),
      process_(::getpid()) {}

CacheProvider::~CacheProvider() = default;

std::string CacheProvider::name() const {
  if (!options_.name.empty()) return options_.name;
  if (options_.folder.empty()) return maker_ ? maker_->name() : "no cache, as HOME is not set";
  return concat("the cache '", utf8(options_.folder), "'", maker_ ? ", then " : "",
                maker_ ? maker_->name() : "");
}

std::string CacheProvider::path(const Digest& key, std::string_view suffix) const {
  return concat(options_.folder, "/", hex(key), suffix);
}

CacheProvider::Entry& CacheProvider::entry(const Digest& key) {
  const std::lock_guard<ForkMutex> lock(entries_mutex_);
  if (process_ != ::getpid()) {
    // A child that was forked while a thread of its parent held one: that stays locked for good.
    process_ = ::getpid();
    for (auto& [made, entry] : entries_) {
      if (!entry) continue;
      if (entry->mutex.try_lock()) {
        entry->mutex.unlock();
      } else {
        // NOLINTNEXTLINE(bugprone-unused-return-value): a locked mutex may not end
        static_cast<void>(entry.release());
      }
    }
  }
  std::unique_ptr<Entry>& entry = entries_[key];
  if (!entry) entry = std::make_unique<Entry>();
  return *entry;
}

std::optional<Bytes> CacheProvider::get(const CodeObjectRef& ref) {
  Entry& entry = this->entry(ref.key);
  std::unique_lock<std::timed_mutex> lock(entry.mutex, std::defer_lock);
  // The wait by a steady clock needs a newer glibc than the wheel.
  while (!lock.try_lock_until(std::chrono::system_clock::now() + std::chrono::milliseconds(20))) {
    check_interrupt();
  }
  if (entry.error && std::chrono::steady_clock::now() < entry.failed_until &&
      maker_->identity() == entry.failed_identity &&
      (!entry.is_failure_kept || ::access(path(ref.key, kFailedSuffix).c_str(), F_OK) == 0)) {
    std::rethrow_exception(entry.error);
  }
  entry.error = nullptr;
  if (entry.unkept) return entry.unkept;
  if (options_.folder.empty()) {
    if (may_make(ref)) entry.unkept = make(ref, entry, nullptr);
    entry.is_unkept = entry.unkept.has_value();
    return entry.unkept;
  }
  std::string refused;
  if (std::optional<Bytes> bytes = read(ref, refused)) return bytes;
  if (!may_make(ref) && refused.empty()) return std::nullopt;
  if (may_make(ref) && refused.empty()) rethrow_known_failure(ref.key);

  std::optional<Bytes> bytes;
  {
    Writer writer(*this, ref);
    // Another process may have been faster.
    if (std::optional<Bytes> others = read(ref, refused)) return others;
    if (!refused.empty()) set_aside(ref.key, refused, writer);
    if (!may_make(ref)) fail(Status::kCorrupt, refused);
    rethrow_known_failure(ref.key);
    bytes = make(ref, entry, &writer);
    if (!bytes) return bytes;
    ::unlink(path(ref.key, kFailedSuffix).c_str());
    if (!fits(*bytes) || !writer.publish(*bytes)) {
      entry.unkept = bytes;
      entry.is_unkept = true;
    }
    if (!writer.error().empty()) {
      warn_once(concat(writer.error(), ", or name another folder in ", kCacheVariable));
    }
  }
  if (!entry.unkept) limit_size(sizeof(CachedFileHeader) + bytes->size());
  return bytes;
}

std::optional<CodeObjectRef> CacheProvider::own(const CodeObjectRef& ref) const {
  return maker_ ? maker_->own(ref) : std::nullopt;
}

Answer CacheProvider::look(const CodeObjectRef& ref) {
  if (entry(ref.key).is_unkept) return {true, "has made it"};
  std::string refused;
  if (!options_.folder.empty() && read(ref, refused)) return {true, "keeps it"};
  if (may_make(ref)) {
    if (const std::optional<KnownFailure> failure = known_failure(ref.key)) {
      return {false, concat("could not make it ", failure->age.count(), " s ago, and tries it ",
                            "again ", options_.failure_life.count(), " s after that; '",
                            utf8(path(ref.key, kFailedSuffix)), "' says why")};
    }
    return maker_->look(ref);
  }
  if (!refused.empty()) fail(Status::kCorrupt, refused);
  return {};
}

void CacheProvider::set_aside(const Digest& key, const std::string& refused,
                              const Writer& writer) const {
  std::string done = concat("it is set aside as ", hex(key), kRefusedSuffix);
  // Without the right to write, another process may be replacing it.
  if (!writer.error().empty()) {
    done = concat("it cannot be set aside: ", writer.error());
  } else if (::rename(path(key, kObjectSuffix).c_str(), path(key, kRefusedSuffix).c_str()) != 0) {
    done = concat("it cannot be set aside: ", failure("rename", path(key, kObjectSuffix), errno));
  }
  warn(concat("aiter-attn: ", refused, ", and is not believed; ", done));
}

std::optional<Bytes> CacheProvider::make(const CodeObjectRef& ref, Entry& entry, Writer* writer) {
  const std::string identity = maker_->identity();
  entry.is_failure_kept = false;
  const auto remember = [&] {
    entry.error = std::current_exception();
    entry.failed_identity = identity;
    entry.failed_until = std::chrono::steady_clock::now() + options_.failure_life;
  };
  try {
    try {
      return maker_->get(ref);
    } catch (const CannotMake& error) {
      if (identity.empty() || !writer || !writer->publish_failure(identity, error)) throw;
      entry.is_failure_kept = true;
      throw CannotMake(concat(error.what(), "\nall that it said is in '",
                              utf8(path(ref.key, kFailedSuffix)), "'"),
                       error.said());
    }
  } catch (const Error& error) {
    if (error.status() == Status::kInternal) remember();
    throw;
  }
}

std::optional<KnownFailure> CacheProvider::known_failure(const Digest& key) const {
  const std::string identity = options_.folder.empty() ? "" : maker_->identity();
  if (identity.empty()) return std::nullopt;
  return read_failure(path(key, kFailedSuffix), identity, options_.failure_life);
}

void CacheProvider::rethrow_known_failure(const Digest& key) const {
  const std::optional<KnownFailure> failure = known_failure(key);
  if (!failure) return;
  const std::string file = utf8(path(key, kFailedSuffix));
  fail(Status::kInternal, failure->message, "\nthat was ", failure->age.count(), " s ago; it is ",
       "tried again ", options_.failure_life.count(), " s after that, or by another compiler, or ",
       "once '", file, "' is removed, which has all that it said");
}

std::optional<Bytes> CacheProvider::read(const CodeObjectRef& ref, std::string& refused) const {
  return read_cached_file(path(ref.key, kObjectSuffix), ref, CacheOwner::kUser, refused);
}

bool CacheProvider::fits(const Bytes& bytes) {
  const uint64_t size = sizeof(CachedFileHeader) + bytes.size();
  if (size <= options_.max_size - slack()) return true;
  warn_once(concat("one has ", bytes.size(), " bytes, and the cache at most ", options_.max_size,
                   "; raise ", kCacheSizeVariable));
  return false;
}

void CacheProvider::limit_size(uint64_t added) {
  if (added_.fetch_add(added) + added < slack()) return;
  added_ = 0;
  make_room(options_.folder, options_.max_size - slack());
}

void CacheProvider::warn_once(const std::string& reason) {
  if (warned_.exchange(true)) return;
  warn(concat("aiter-attn: kernels compiled at run time are not kept: ", reason));
}

void CacheProvider::warn(const std::string& line) const {
  if (options_.warn) return options_.warn(line);
  std::fprintf(stderr, "%s\n", line.c_str());
}

void CacheProvider::tell(const std::string& line) const {
  if (options_.tell) return options_.tell(line);
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
