// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/remote/remote.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/store/cached_file.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostSeconds = 3600;

// "https://user:secret@host/path" -> "https://user@host/path".
std::string without_password(const std::string& url) {
  const size_t host = url.find("://") + 3;
  const size_t end = std::min(url.find('/', host), url.size());
  const size_t at = url.rfind('@', end);
  const size_t colon = url.find(':', host);
  if (at == url.npos || at < host || colon == url.npos || colon > at) return url;
  return url.substr(0, colon) + url.substr(at);
}

}  // namespace

RemoteProvider::RemoteProvider(RemoteOptions options)
    : options_(std::move(options)), shown_(utf8(without_password(options_.url))) {}

std::string RemoteProvider::name() const { return concat("the store '", shown_, "'"); }

std::optional<Bytes> RemoteProvider::fetch(const std::string& file, uint64_t limit,
                                           const Digest& key) {
  {
    const std::lock_guard<ForkMutex> lock(failure_mutex_);
    if (Clock::now() < closed_until_) {
      fail(Status::kDriver, name(), " is not asked again for a while: it ", failure_);
    }
  }
  DownloadLimits limits = options_.limits;
  limits.bytes = std::min(limits.bytes, limit);
  try {
    return downloader().get(options_.url + file, limits);
  } catch (const Error& error) {
    if (error.status() == Status::kInterrupted) throw;
    const std::lock_guard<ForkMutex> lock(failure_mutex_);
    closed_until_ = Clock::now() + options_.pause;
    failure_ = concat("failed: ", error.what());
    fail(error.status(), "code object ", hex(key), " cannot be had from ", shown_, file, ": ",
         error.what());
  }
}

std::optional<Bytes> RemoteProvider::get(const CodeObjectRef& ref) {
  if (!may_have(ref)) return std::nullopt;
  if (!options_.forbidden.empty()) fail(Status::kUnsupported, options_.forbidden);
  try {
    std::optional<Bytes> bytes =
        ref.sha256 ? get_proven(ref.key, *ref.sha256) : get_signed(ref.key);
    note(ref.key, bytes ? "" : Answer().text);
    return bytes;
  } catch (const Error& error) {
    if (error.status() != Status::kInterrupted) note(ref.key, error.what());
    throw;
  }
}

void RemoteProvider::note(const Digest& key, const std::string& answer) {
  const std::lock_guard<ForkMutex> lock(failure_mutex_);
  if (answer.empty()) {
    answers_.erase(key);
  } else {
    answers_[key] = answer;
  }
}

std::optional<Bytes> RemoteProvider::get_proven(const Digest& key, const Digest& wanted) {
  const std::string file = concat("/cas/", hex(wanted));
  std::optional<Bytes> bytes = fetch(file, kMostObjectBytes, key);
  if (!bytes) return std::nullopt;
  if (const Digest digest = sha256(bytes->data(), bytes->size()); digest != wanted) {
    fail(Status::kCorrupt, "code object ", hex(key), " of ", shown_, file, " has sha256 ",
         hex(digest), " instead of ", hex(wanted));
  }
  return bytes;
}

std::optional<Bytes> RemoteProvider::get_signed(const Digest& key) {
  const std::string file = concat("/code-objects/", hex(key), ".object");
  const std::string shown = shown_ + file;
  const std::optional<Bytes> bytes = fetch(file, kMostObjectBytes + sizeof(CachedFileHeader), key);
  if (!bytes) return std::nullopt;
  const std::optional<Bytes> signature = fetch(file + kSignatureSuffix, kMostSignatureBytes, key);
  if (!signature) {
    fail(Status::kUnsupported, "code object ", hex(key), " of ", shown, " has no signature beside ",
         "it, and nothing else proves its bytes");
  }
  SignedContent content;
  content.add(bytes->data(), bytes->size());
  try {
    const std::string text(signature->begin(), signature->end());
    verify_signature_text(text, shown + kSignatureSuffix, content.hash(), options_.trusted);
  } catch (const Error& error) {
    fail(error.status(), "code object ", hex(key), " of ", shown, " ", error.what());
  }
  // A file of another key may be signed, too.
  std::string refused;
  std::optional<Bytes> object = object_of_file(*bytes, key, refused);
  if (!object) fail(Status::kCorrupt, "code object ", hex(key), " of ", shown, " ", refused);
  return object;
}

const Downloader& RemoteProvider::downloader() {
  if (const Downloader* ready = downloader_.load(std::memory_order_acquire)) return *ready;
  const std::lock_guard<OpeningMutex> lock(opening_);
  if (!opened_) opened_ = options_.open();
  downloader_.store(opened_.get(), std::memory_order_release);
  return *opened_;
}

Answer RemoteProvider::look(const CodeObjectRef& ref) {
  if (!may_have(ref)) return {false, "is not asked: nothing would prove its bytes"};
  if (!options_.forbidden.empty()) fail(Status::kUnsupported, options_.forbidden);
  {
    const std::lock_guard<ForkMutex> lock(failure_mutex_);
    const auto known = answers_.find(ref.key);
    if (known != answers_.end()) return {false, known->second};
  }
  Answer answer = {true, "is asked for it at its first use"};
  if (!ref.sha256) answer.text = "is asked for it, signed by a trusted key, at its first use";
  answer.is_fetched = true;
  return answer;
}

std::string named_store() {
  std::string url = variable(kStoreVariable);
  if (url.empty()) return url;
  const bool is_web = url.rfind("http://", 0) == 0 || url.rfind("https://", 0) == 0;
  const bool is_text =
      std::all_of(url.begin(), url.end(), [](unsigned char c) { return c > ' ' && c < 127; });
  if (!is_web || !is_text || url.find_first_of("?#") != url.npos) {
    fail(Status::kInvalidArgument, kStoreVariable, " is '", utf8(without_password(url)),
         "', but must be the URL of a folder on a server: http://... or https://...");
  }
  while (url.back() == '/') url.pop_back();
  return url;
}

std::chrono::seconds store_limit() {
  const std::string text = variable(kStoreSecondsVariable);
  if (text.empty()) return std::chrono::duration_cast<std::chrono::seconds>(DownloadLimits().whole);
  int seconds = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9' || seconds > kMostSeconds) {
      seconds = 0;
      break;
    }
    seconds = 10 * seconds + (digit - '0');
  }
  if (seconds < 1 || seconds > kMostSeconds) {
    fail(Status::kInvalidArgument, kStoreSecondsVariable, " is '", utf8(text),
         "', but must be a whole number of seconds from 1 to ", kMostSeconds);
  }
  return std::chrono::seconds(seconds);
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
