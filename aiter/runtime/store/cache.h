// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Code objects that were made at run time: kept in a folder, made once for all threads and
// processes that use it. A file KEY.object is little-endian:
//
//   magic "ATTNOBJ1", key[32], sha256[32] of the object, uint64 its size; the object
//
// A writer holds the lock of KEY.new (new_file.h) while it makes the object, writes it to a file of
// its own, and renames that when it is complete and on the disk: KEY.object is whole or does not
// exist. Its
// time of modification is that of its last use, by which the folder is limited (cache_limit.h).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "aiter/runtime/fork_mutex.h"
#include "aiter/runtime/store/cache_limit.h"
#include "aiter/runtime/store/failure.h"
#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

inline constexpr char kCacheVariable[] = "AITER_ATTN_CACHE_DIR";
inline constexpr char kCkJitCacheVariable[] = "CK_JIT_CACHE_DIR";  // ck-jit's

// Where this user's code objects are kept: `code-objects` in the folder that AITER_ATTN_CACHE_DIR
// names, or in aiter-attn of CK_JIT_CACHE_DIR, of XDG_CACHE_HOME or of ~/.cache; "" where none of
// them is set. Throws Status::kInvalidArgument where one of the first two is relative.
std::string user_cache_folder();

struct CacheOptions {
  // Of the provider; "": by the folder and the maker.
  std::string name;
  // "": nothing is kept. It is made when it is first written to.
  std::string folder;
  // Gets one line, once, where something that is made cannot be kept, and one for each file that is
  // refused. By default they go to stderr.
  std::function<void(const std::string&)> warn;
  // Gets one line where another process makes an object that this one has waited for for a second.
  // By default it goes to stderr.
  std::function<void(const std::string&)> tell;
  // For another process that makes the same object, which takes less than a second. One that takes
  // longer, or is stopped, is not waited for: this process makes it for itself.
  std::chrono::milliseconds patience = std::chrono::seconds(10);
  // Of the folder's objects. A process looks at it when it first adds one, and after every 64th of
  // it that it has added: each further process that adds at the time may exceed it by as much.
  uint64_t max_size = kDefaultCacheSize;
  std::chrono::seconds failure_life = std::chrono::minutes(10);
};

// A folder that keeps the objects of a maker, and objects that were put there. A file that is
// damaged, that is another user's (but root's), that others may write to, or that has another
// kernel than the one that is launched, is refused: it is told, set aside as KEY.refused, and
// replaced. Into a folder like that nothing is written. Where the folder cannot be written to, its
// objects still serve. An error of the maker's of Status::kInternal (a kernel does not compile) is
// thrown again for the same key for a while, failure_life: nothing is made twice in vain. Where the
// maker has an identity, the folder keeps the failure for other processes, and another identity
// ends it. Other errors, such as a lack of memory, may pass.
class CacheProvider : public Provider {
 public:
  // maker: NULL: nothing is made.
  CacheProvider(CacheOptions options, std::unique_ptr<Provider> maker);
  ~CacheProvider() override;
  std::string name() const override;
  // Only threads and processes that want the same key wait for each other. Throws
  // Status::kInterrupted where the calling thread's interrupt says so meanwhile.
  std::optional<Bytes> get(const CodeObjectRef& ref) override;
  Answer look(const CodeObjectRef& ref) override;
  std::optional<CodeObjectRef> own(const CodeObjectRef& ref) const override;

 private:
  class Writer;
  struct Entry {
    std::timed_mutex mutex;
    std::exception_ptr error;
    std::string failed_identity;   // the maker's at the time
    bool is_failure_kept = false;  // in the folder, until somebody removes it
    std::chrono::steady_clock::time_point failed_until;
    std::optional<Bytes> unkept;         // an object that was made and is not in the folder
    std::atomic<bool> is_unkept{false};  // for a look, which must not wait for a get()
  };

  Entry& entry(const Digest& key);
  // writer: NULL: nothing is kept.
  std::optional<Bytes> make(const CodeObjectRef& ref, Entry& entry, Writer* writer);
  std::optional<KnownFailure> known_failure(const Digest& key) const;
  void rethrow_known_failure(const Digest& key) const;
  std::string path(const Digest& key, std::string_view suffix) const;
  bool may_make(const CodeObjectRef& ref) const { return maker_ && maker_->may_have(ref); }
  // refused: the reason, where there is a file and it is not believed.
  std::optional<Bytes> read(const CodeObjectRef& ref, std::string& refused) const;
  void set_aside(const Digest& key, const std::string& refused, const Writer& writer) const;
  void warn(const std::string& line) const;
  void tell(const std::string& line) const;
  // The bytes that may be added until the next look at the folder.
  uint64_t slack() const { return options_.max_size / 64; }
  bool fits(const Bytes& bytes);
  void limit_size(uint64_t added);
  void warn_once(const std::string& reason);

  const CacheOptions options_;
  const std::unique_ptr<Provider> maker_;
  std::atomic<bool> warned_{false};
  std::atomic<uint64_t> added_;  // since this process last looked
  pid_t process_;                // whose threads hold the entries' mutexes
  ForkMutex entries_mutex_;      // of the map
  std::map<Digest, std::unique_ptr<Entry>> entries_;
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
