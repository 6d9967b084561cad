// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/spec.h"

#include <map>
#include <utility>

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

std::string json_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ",") + quoted(text);
  return "[" + list + "]";
}

std::vector<std::string> read_list(Reader& reader) {
  std::vector<std::string> texts;
  reader.skip("[");
  while (!reader.next_is("]")) {
    if (!texts.empty()) reader.skip(",");
    texts.push_back(reader.string());
  }
  reader.skip("]");
  return texts;
}

// Escapes that are not needed, and text behind the end, are not canonical either.
void require_canonical(std::string_view text, const std::string& canonical) {
  if (text == canonical) return;
  fail(Status::kInvalidArgument, "not the canonical form of a code object's spec: ", text,
       " should read ", canonical);
}

}  // namespace

CodeObjectSpec CodeObjectSpec::parse(std::string_view text) {
  CodeObjectSpec spec;
  Reader reader(text);
  reader.skip("{\"arch\":");
  spec.arch = reader.string();
  reader.skip(",\"flags\":");
  spec.flags = read_list(reader);
  reader.skip(",\"format\":");
  reader.skip(kFormat);
  constexpr std::string_view kGroup = ",\"group\":";
  if (reader.next_is(kGroup)) {
    reader.skip(kGroup);
    spec.group = reader.string();
  }
  reader.skip(",\"headers\":");
  spec.headers = reader.string();
  reader.skip(",\"source\":");
  spec.source = reader.string();
  reader.skip(",\"toolchain\":");
  spec.toolchain = reader.string();
  require_canonical(text, spec.canonical());
  return spec;
}

std::string CodeObjectSpec::canonical() const {
  return concat("{\"arch\":", quoted(arch), ",\"flags\":", json_list(flags),
                ",\"format\":", kFormat,
                group.empty() ? "" : ",\"group\":", group.empty() ? "" : quoted(group),
                ",\"headers\":", quoted(headers), ",\"source\":", quoted(source),
                ",\"toolchain\":", quoted(toolchain), "}");
}

Digest CodeObjectSpec::key() const {
  const std::string text = canonical();
  return sha256(text.data(), text.size());
}

CodeObjectSpec CodeObjectSpec::alone() const {
  CodeObjectSpec spec = *this;
  spec.group.clear();
  return spec;
}

Recipe Recipe::parse(std::string_view text) {
  Recipe recipe;
  Reader reader(text);
  reader.skip("{\"flags\":");
  recipe.flags = read_list(reader);
  reader.skip(",\"headers\":");
  recipe.headers = reader.string();
  reader.skip(",\"toolchain\":");
  recipe.toolchain = reader.string();
  require_canonical(text, recipe.serialised());
  return recipe;
}

std::string Recipe::serialised() const {
  return concat("{\"flags\":", json_list(flags), ",\"headers\":", quoted(headers),
                ",\"toolchain\":", quoted(toolchain), "}");
}

CodeObjectSpec Recipe::spec(std::string source, std::string arch,
                            const std::vector<std::string>& more_flags) const {
  CodeObjectSpec spec = {std::move(arch), flags, headers, std::move(source), toolchain, {}};
  spec.flags.insert(spec.flags.end(), more_flags.begin(), more_flags.end());
  return spec;
}

std::string header_tree_digest(const std::vector<SourceFile>& files) {
  std::map<std::string_view, Digest> sorted;
  for (const SourceFile& file : files) {
    sorted[file.name] = sha256(file.text.data(), file.text.size());
  }
  std::string lines;
  for (const auto& [name, digest] : sorted) lines += concat(hex(digest), " ", name, "\n");
  return hex(sha256(lines.data(), lines.size()));
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
