// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <utility>

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/interrupt.h"
#include "aiter/runtime/remote/curl_api.h"
#include "aiter/runtime/remote/download.h"
#include "aiter/runtime/shared_library.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kVersions[] = "libcurl 7.32 or newer";
constexpr int64_t kStalledSeconds = 20;  // without a byte
constexpr int64_t kMostRedirects = 5;

// A server that closes a connection must not end the process: libcurl leaves SIGPIPE to its user
// where it may set no handlers.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    // Linux's is of the calling thread; pthread_sigmask needs a newer glibc than the wheel.
    sigprocmask(SIG_BLOCK, &pipe_, &before_);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;
  ~NoSigpipe() {
    constexpr timespec kNow = {};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &kNow);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_;
};

// One file, over several attempts.
struct Transfer {
  Bytes bytes;
  uint64_t most = 0;
  bool is_too_large = false;
  bool is_interrupted = false;
  bool is_refused = false;  // no file, but a page that says why not
  std::function<int64_t()> response_code;
};

size_t write(char* bytes, size_t size, size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const size_t more = size * count;
  const int64_t code = transfer.response_code();
  // Nothing of an error's page, which may be without end.
  if (code != 200 && code != 206) {
    transfer.is_refused = true;
    return 0;
  }
  if (more > transfer.most - transfer.bytes.size()) {
    transfer.is_too_large = true;
    return 0;
  }
  try {
    transfer.bytes.insert(transfer.bytes.end(), bytes, bytes + more);
  } catch (const std::bad_alloc&) {
    transfer.is_too_large = true;
    return 0;
  }
  return more;
}

int progress(void* context, curl::Off, curl::Off, curl::Off, curl::Off) {
  const Interrupt& interrupt = thread_interrupt();
  auto& transfer = *static_cast<Transfer*>(context);
  transfer.is_interrupted = interrupt.poll && interrupt.poll(interrupt.context) != 0;
  return transfer.is_interrupted ? 1 : 0;
}

// The first that is set; "": none.
std::string first_of(std::initializer_list<const char*> variables) {
  for (const char* name : variables) {
    if (std::string value = variable(name); !value.empty()) return value;
  }
  return "";
}

class Curl final : public Downloader {
 public:
  Curl(SharedLibrary library, std::string user_agent)
      : library_(std::move(library)), user_agent_(std::move(user_agent)) {
    curl::GlobalInit global_init;
    library_.bind("curl_global_init", kVersions, &global_init);
    library_.bind("curl_easy_init", kVersions, &init_);
    library_.bind("curl_easy_setopt", kVersions, &setopt_);
    library_.bind("curl_easy_perform", kVersions, &perform_);
    library_.bind("curl_easy_getinfo", kVersions, &getinfo_);
    library_.bind("curl_easy_cleanup", kVersions, &cleanup_);
    library_.bind("curl_easy_strerror", kVersions, &strerror_);
    if (const curl::Result result = global_init(curl::kGlobalAll)) {
      fail(Status::kDriver, library_.path(), " cannot be used: ", utf8(strerror_(result)));
    }
  }

  std::optional<Bytes> get(const std::string& url, const DownloadLimits& limits) const override {
    const Clock::time_point end = Clock::now() + limits.whole;
    Transfer transfer;
    transfer.most = limits.bytes;
    std::string error;
    for (int attempt = 0; attempt < limits.attempts; ++attempt) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
      if (left.count() <= 0) break;
      const size_t had = transfer.bytes.size();
      const Outcome outcome = attempt_once(url, limits, left, &transfer);
      if (outcome.code == 404 || outcome.code == 410) return std::nullopt;
      if (outcome.result == curl::kOk && outcome.code == (had ? 206 : 200)) return transfer.bytes;
      error = reason(outcome, transfer, limits);
      // The server began anew, or had nothing to go on with.
      if (had && outcome.code != 206) transfer.bytes.clear();
      // An answer is an answer; a connection may break off.
      if (outcome.code >= 400 && outcome.code < 500 && outcome.code != 416) break;
      if (transfer.is_too_large || outcome.result == curl::kUnsupportedProtocol) break;
    }
    fail(Status::kDriver, error);
  }

 private:
  struct Outcome {
    curl::Result result;
    int64_t code;  // 0: the server said none
    std::string text;
  };

  Outcome attempt_once(const std::string& url, const DownloadLimits& limits,
                       std::chrono::milliseconds left, Transfer* transfer) const {
    const NoSigpipe no_sigpipe;
    const std::unique_ptr<void, curl::EasyCleanup> easy(init_(), cleanup_);
    if (!easy) fail(Status::kOutOfMemory, "libcurl gives no handle");
    const auto code = [&] {
      curl::Integer number = 0;
      getinfo_(easy.get(), curl::kInfoResponseCode, &number);
      return static_cast<int64_t>(number);
    };
    transfer->response_code = code;
    transfer->is_refused = false;
    std::array<char, curl::kErrorSize> error = {};
    const auto number = [&](curl::Option option, int64_t value) {
      require(option, setopt_(easy.get(), option, static_cast<curl::Integer>(value)));
    };
    const auto pointer = [&](curl::Option option, auto value) {
      require(option, setopt_(easy.get(), option, value));
    };
    number(curl::kNoSignal, 1);
    pointer(curl::kErrorBuffer, error.data());
    pointer(curl::kUrl, url.c_str());
    pointer(curl::kUserAgent, user_agent_.c_str());
    number(curl::kProtocols, curl::kHttpAndHttps);
    number(curl::kRedirProtocols, curl::kHttpAndHttps);
    number(curl::kFollowLocation, 1);
    number(curl::kMaxRedirs, kMostRedirects);
    number(curl::kNetrc, curl::kNetrcOptional);
    // libcurl leaves these to the program.
    const std::string file = first_of({"CURL_CA_BUNDLE", "SSL_CERT_FILE"});
    const std::string folder = first_of({"SSL_CERT_DIR"});
    if (!file.empty()) pointer(curl::kCaInfo, file.c_str());
    // Not every libcurl can; one that cannot goes by the files it knows.
    if (!folder.empty()) static_cast<void>(setopt_(easy.get(), curl::kCaPath, folder.c_str()));
    number(curl::kConnectTimeoutMs, std::min(limits.connect, left).count());
    number(curl::kTimeoutMs, left.count());
    number(curl::kLowSpeedLimit, 1);
    number(curl::kLowSpeedTime, kStalledSeconds);
    pointer(curl::kWriteFunction, static_cast<curl::Write>(write));
    pointer(curl::kWriteData, static_cast<void*>(transfer));
    pointer(curl::kXferInfoFunction, static_cast<curl::XferInfo>(progress));
    pointer(curl::kXferInfoData, static_cast<void*>(transfer));
    number(curl::kNoProgress, 0);
    if (!transfer->bytes.empty()) {
      pointer(curl::kResumeFromLarge, static_cast<curl::Off>(transfer->bytes.size()));
    }
    const curl::Result result = perform_(easy.get());
    if (transfer->is_interrupted) fail(Status::kInterrupted, "interrupted");
    return {result, code(), error[0] ? utf8(error.data()) : utf8(strerror_(result))};
  }

  void require(curl::Option option, curl::Result result) const {
    if (result == curl::kOk) return;
    fail(Status::kDriver, library_.path(), " refuses option ", option, ": ",
         utf8(strerror_(result)), "; it must be ", kVersions);
  }

  static std::string reason(const Outcome& outcome, const Transfer& transfer,
                            const DownloadLimits& limits) {
    if (transfer.is_too_large) return concat("sends more than ", limits.bytes, " bytes");
    if (transfer.is_refused || outcome.result == curl::kOk) {
      return concat("answers with status ", outcome.code);
    }
    return outcome.text;
  }

  const SharedLibrary library_;
  const std::string user_agent_;
  curl::EasyInit init_;
  curl::EasySetopt setopt_;
  curl::EasyPerform perform_;
  curl::EasyGetinfo getinfo_;
  curl::EasyCleanup cleanup_;
  curl::EasyStrerror strerror_;
};

}  // namespace

std::unique_ptr<Downloader> open_curl(const std::string& user_agent) {
  LibrarySearch search;
  search.what = "libcurl";
  search.variable = kCurlVariable;
  search.sonames = {"libcurl.so.4", "libcurl-gnutls.so.4"};
  search.remedy = "install your system's libcurl (Debian, Ubuntu: libcurl4; Fedora, RHEL: libcurl)";
  return std::make_unique<Curl>(SharedLibrary::open(search), user_agent);
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
