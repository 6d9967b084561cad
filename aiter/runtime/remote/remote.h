// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A store of code objects on an HTTP(S) server: static files URL/cas/SHA256, each named by the
// sha256 of its bytes, which is the layout of Bazel's HTTP caches. The server is not trusted: an
// object is asked for by the digest that the library knows, and held against it. One whose digest
// it does not know is a file of a cache, URL/code-objects/KEY.object, beside its signature by a key
// that the user trusts, KEY.object.minisig: the head of the file has the key.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aiter/runtime/fork_mutex.h"
#include "aiter/runtime/remote/download.h"
#include "aiter/runtime/store/signature.h"
#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

inline constexpr char kStoreVariable[] = "AITER_ATTN_STORE";
inline constexpr char kStoreSecondsVariable[] = "AITER_ATTN_STORE_SECONDS";

struct RemoteOptions {
  std::string url;
  DownloadLimits limits;
  // The reason why it must not be asked; "": it may.
  std::string forbidden;
  // A server that failed is not asked again for so long: each kernel would wait for it.
  std::chrono::milliseconds pause = std::chrono::seconds(30);
  std::function<std::unique_ptr<Downloader>()> open;  // when it is first asked
  // By which objects are believed whose digest is not known.
  std::vector<PublicKey> trusted;
};

class RemoteProvider : public Provider {
 public:
  explicit RemoteProvider(RemoteOptions options);
  std::string name() const override;
  bool may_have(const CodeObjectRef& ref) const override {
    return ref.sha256 || !options_.trusted.empty();
  }
  // Throws Status::kUnsupported where it must not be asked, or no trusted key has signed the
  // object, Status::kDriver where the server cannot be asked, Status::kCorrupt where it gives other
  // bytes.
  std::optional<Bytes> get(const CodeObjectRef& ref) override;
  // Asks no server: tells how the last get() of the key ended, where one did.
  Answer look(const CodeObjectRef& ref) override;

 private:
  const Downloader& downloader();
  // A file of the server's, for the object of a key. limit: bytes.
  std::optional<Bytes> fetch(const std::string& file, uint64_t limit, const Digest& key);
  std::optional<Bytes> get_proven(const Digest& key, const Digest& wanted);
  std::optional<Bytes> get_signed(const Digest& key);
  void note(const Digest& key, const std::string& answer);

  const RemoteOptions options_;
  const std::string shown_;  // the URL without its password
  OpeningMutex opening_;     // one thread opens it, the others wait
  std::unique_ptr<Downloader> opened_;
  std::atomic<const Downloader*> downloader_{nullptr};
  ForkMutex failure_mutex_;
  std::chrono::steady_clock::time_point closed_until_ = {};
  std::string failure_;
  std::map<Digest, std::string> answers_;  // of those that it was asked for and did not give
};

// AITER_ATTN_STORE without a slash at its end; "": none. Throws Status::kInvalidArgument where it
// is no URL of http or https.
std::string named_store();
// AITER_ATTN_STORE_SECONDS, or 60. Throws Status::kInvalidArgument where it is no whole number from
// 1 to 3600.
std::chrono::seconds store_limit();

}  // namespace AITER_ATTN_NAMESPACE::runtime
