// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/failure.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <ctime>

#include "aiter/runtime/store/file.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr std::string_view kFirstLine = "ATTNFAIL1\n";
constexpr off_t kMostBytes = 1 << 20;

// The text up to the next line's end, which is taken off with it. Nothing: there is none.
std::optional<std::string_view> take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == text.npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace

Bytes failure_file(const std::string& identity, const std::string& message,
                   const std::string& said) {
  std::string text = concat(kFirstLine, identity, "\n", message.size(), "\n", message, "\n", said);
  if (text.size() > kMostBytes) text.resize(kMostBytes);
  return {text.begin(), text.end()};
}

std::optional<KnownFailure> read_failure(const std::string& path, const std::string& identity,
                                         std::chrono::seconds life) {
  const File file(path, O_RDONLY);
  struct stat status;
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      !is_trusted(status) || status.st_size > kMostBytes) {
    return std::nullopt;
  }
  // A clock that was set back must not keep it alive for years.
  const std::chrono::seconds age(std::time(nullptr) - status.st_mtim.tv_sec);
  if (age.count() < 0 || age >= life) return std::nullopt;
  std::string text(static_cast<size_t>(status.st_size), '\0');
  if (!read_all(file.get(), text.data(), text.size())) return std::nullopt;
  std::string_view rest = text;
  if (rest.substr(0, kFirstLine.size()) != kFirstLine) return std::nullopt;
  rest.remove_prefix(kFirstLine.size());
  const std::optional<std::string_view> made_by = take_line(rest);
  const std::optional<std::string_view> digits = take_line(rest);
  if (!made_by || *made_by != identity || !digits || digits->empty() || digits->size() > 7 ||
      digits->find_first_not_of("0123456789") != digits->npos) {
    return std::nullopt;
  }
  const size_t size = std::stoul(std::string(*digits));
  if (size > rest.size()) return std::nullopt;
  return KnownFailure{std::string(rest.substr(0, size)), age};
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
