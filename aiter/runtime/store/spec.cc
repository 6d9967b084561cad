// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/spec.h"

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// Raised when the meaning of a field changes, so that no old key can name a new object.
constexpr std::string_view kFormat = "1";

std::string quoted(std::string_view text) {
  std::string json = "\"";
  for (char c : text) {
    if (c < ' ' || c > '~') {
      fail(Status::kInvalidArgument, "a code object's spec has '", text,
           "', but may have printable ASCII only");
    }
    if (c == '"' || c == '\\') json += '\\';
    json += c;
  }
  return json + '"';
}

// Takes canonical() apart, token by token.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), rest_(text) {}

  bool next_is(std::string_view token) const { return rest_.substr(0, token.size()) == token; }
  void skip(std::string_view token) {
    if (!next_is(token)) {
      fail(Status::kInvalidArgument, "not the canonical form of a code object's spec: expected '",
           token, "' at byte ", text_.size() - rest_.size(), " of ", text_);
    }
    rest_.remove_prefix(token.size());
  }
  std::string string() {
    skip("\"");
    std::string text;
    while (!rest_.empty() && !next_is("\"")) {
      if (next_is("\\")) skip("\\");
      if (rest_.empty()) break;
      text += rest_.front();
      rest_.remove_prefix(1);
    }
    skip("\"");
    return text;
  }

 private:
  std::string_view text_, rest_;
};

}  // namespace

CodeObjectSpec CodeObjectSpec::parse(std::string_view text) {
  CodeObjectSpec spec;
  Reader reader(text);
  reader.skip("{\"arch\":");
  spec.arch = reader.string();
  reader.skip(",\"flags\":[");
  while (!reader.next_is("]")) {
    if (!spec.flags.empty()) reader.skip(",");
    spec.flags.push_back(reader.string());
  }
  reader.skip("],\"format\":");
  reader.skip(kFormat);
  reader.skip(",\"headers\":");
  spec.headers = reader.string();
  reader.skip(",\"source\":");
  spec.source = reader.string();
  reader.skip(",\"toolchain\":");
  spec.toolchain = reader.string();
  // Escapes that are not needed, and what follows the end, are not canonical either.
  if (text != spec.canonical()) {
    fail(Status::kInvalidArgument, "not the canonical form of a code object's spec: ", text,
         " should read ", spec.canonical());
  }
  return spec;
}

std::string CodeObjectSpec::canonical() const {
  std::string list;
  for (const std::string& flag : flags) list += (list.empty() ? "" : ",") + quoted(flag);
  return concat("{\"arch\":", quoted(arch), ",\"flags\":[", list, "],\"format\":", kFormat,
                ",\"headers\":", quoted(headers), ",\"source\":", quoted(source),
                ",\"toolchain\":", quoted(toolchain), "}");
}

Digest CodeObjectSpec::key() const {
  const std::string text = canonical();
  return sha256(text.data(), text.size());
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
