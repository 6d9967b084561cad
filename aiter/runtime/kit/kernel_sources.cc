// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/kit/kernel_sources.h"

#include <unistd.h>

#include <optional>
#include <sstream>
#include <utility>

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/store/pack_file.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {

KernelSources::KernelSources(std::string path, std::string_view version)
    : path_(std::move(path)), pack_(open_pack_file(path_, version)) {}

Bytes KernelSources::get(const std::string& digest, const char* what) const {
  const std::optional<Digest> key = parse_hex(digest);
  std::optional<Bytes> bytes;
  if (key) bytes = pack_->get({*key, key});
  if (bytes) return *std::move(bytes);
  fail(Status::kUnsupported, "'", utf8(path_), "' has not ", what, ", ", utf8(digest),
       "; install the wheel of this library's build again");
}

Bytes KernelSources::source(const CodeObjectSpec& spec) const {
  return get(spec.source, "the kernel's source");
}

std::vector<SourceFile> KernelSources::headers(const std::string& tree) const {
  const Bytes listed = get(tree, "the kernel's headers");
  std::istringstream lines({listed.begin(), listed.end()});
  std::vector<SourceFile> headers;
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    SourceFile header;
    header.name = space == line.npos ? "" : line.substr(space + 1);
    // Its digest is right, so that whoever wrote this meant it.
    if (header.name.empty() || header.name[0] == '/' ||
        concat("/", header.name, "/").find("/../") != std::string::npos) {
      fail(Status::kCorrupt, "'", utf8(path_), "' has headers of the name '", utf8(header.name),
           "', which is no path below a folder; install the wheel of this library's build again");
    }
    const Bytes text = get(line.substr(0, space), "a header");
    header.text.assign(text.begin(), text.end());
    headers.push_back(std::move(header));
  }
  return headers;
}

std::string find_kernel_sources(const std::vector<std::string>& installed) {
  if (std::string named = variable(kKernelSourcesVariable); !named.empty()) {
    if (named[0] == '/') return named;
    fail(Status::kInvalidArgument, kKernelSourcesVariable, " is '", utf8(named),
         "', but must be an absolute path: the working directory differs between processes");
  }
  for (const std::string& path : installed) {
    if (::access(path.c_str(), F_OK) == 0) return path;
  }
  return "";
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
