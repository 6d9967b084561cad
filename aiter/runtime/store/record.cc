// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/record.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <set>
#include <sstream>

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/store/file.h"
#include "aiter/runtime/store/new_file.h"
#include "aiter/runtime/store/store.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr char kFirstLine[] = "# Kernels that runs asked for: aiter-attn prebuild build FILE";
constexpr off_t kMostBytes = 64 << 20;
constexpr std::chrono::seconds kPatience(10);

// The lines of a file that is there. The reason why it is no such list; "": it is, or is empty, or
// is not there.
std::string read_lines(const std::string& path, std::set<std::string>* lines) {
  const File file(path, O_RDONLY);
  if (!file) return errno == ENOENT ? "" : failure("open", path, errno);
  struct stat status;
  std::string text;
  if (::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
      status.st_size <= kMostBytes) {
    text.resize(static_cast<size_t>(status.st_size));
    if (!read_all(file.get(), text.data(), text.size())) return failure("read", path, errno);
    if (text.empty()) return "";
  }
  std::istringstream in(text);
  std::string line;
  if (!std::getline(in, line) || line != kFirstLine) {
    return concat("'", utf8(path), "' is there and is no list of kernels; name another file");
  }
  while (std::getline(in, line)) lines->insert(line);
  return "";
}

}  // namespace

std::string record_file() {
  std::string file = variable(kRecordVariable);
  if (file.empty() || file[0] == '/') return file;
  fail(Status::kInvalidArgument, kRecordVariable, " is '", utf8(file),
       "', but must be an absolute path: the working directory differs between processes");
}

std::string record(const std::string& file, const std::string& line) {
  NewFile next(file + ".new");
  if (!next.acquire(kPatience)) return next.error();
  std::set<std::string> lines;
  if (std::string error = read_lines(file, &lines); !error.empty()) return error;
  if (!lines.insert(line).second) return "";
  std::string text = concat(kFirstLine, "\n");
  for (const std::string& each : lines) text += each + "\n";
  return next.publish(nullptr, 0, Bytes(text.begin(), text.end()), file) ? "" : next.error();
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
