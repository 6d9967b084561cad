// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/signature.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>
#include <string_view>

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/store/file.h"
#include "aiter/runtime/store/sha512.h"
#include "aiter/runtime/text.h"
#include "monocypher.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr std::string_view kUntrusted = "untrusted comment: ", kTrusted = "trusted comment: ";
// The first two bytes: of a key, of a signature of the file's hash, of one of the file itself.
constexpr std::string_view kKey = "Ed", kOfHash = "ED", kOfFile = "Ed";

using Signature = std::array<unsigned char, 64>;

struct KeyText {
  char kind[2];
  PublicKey key;
};
static_assert(sizeof(KeyText) == 42);

struct SignatureText {
  char kind[2];
  std::array<unsigned char, 8> id;
  Signature signature;
};
static_assert(sizeof(SignatureText) == 74);

// All of a small file; nothing, and errno, where it cannot be read.
std::optional<std::string> read_text(const std::string& path, bool must_be_own) {
  const File file(path, O_RDONLY, File::Links::kFollowed);
  struct stat status;
  if (!file || ::fstat(file.get(), &status) != 0) return std::nullopt;
  errno = EINVAL;
  if (!S_ISREG(status.st_mode) || status.st_size > static_cast<off_t>(kMostSignatureBytes))
    return std::nullopt;
  errno = EPERM;
  if (must_be_own && !is_trusted(status)) return std::nullopt;
  std::string text(static_cast<size_t>(status.st_size), '\0');
  errno = EIO;
  if (!read_all(file.get(), text.data(), text.size())) return std::nullopt;
  return text;
}

// Exactly as many bytes as Bytes has, in base64.
template <typename Bytes>
std::optional<Bytes> decoded(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr size_t kPadding = (3 - sizeof(Bytes) % 3) % 3;
  std::string bytes;
  if (text.size() != (sizeof(Bytes) + 2) / 3 * 4) return std::nullopt;
  if (text.substr(text.size() - kPadding) != std::string_view("==", kPadding)) return std::nullopt;
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t group = 0;
    for (size_t j = i; j < i + 4; ++j) {
      const size_t digit = j + kPadding >= text.size() ? 0 : kDigits.find(text[j]);
      if (digit == kDigits.npos) return std::nullopt;
      group = group << 6 | static_cast<uint32_t>(digit);
    }
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(group >> shift);
  }
  Bytes value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

bool begins(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// minisign's number of a key.
std::string number(const std::array<unsigned char, 8>& id) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string text;
  for (auto byte = id.rbegin(); byte != id.rend(); ++byte) {
    text += kDigits[*byte >> 4];
    text += kDigits[*byte & 15];
  }
  return text;
}

// Ed25519 (RFC 8032).
bool is_signed(const Signature& signature, const PublicKey& key,
               std::initializer_list<std::pair<const void*, size_t>> two_parts) {
  const auto* const part = two_parts.begin();
  const Digest512 hash =
      sha512({{signature.data(), 32}, {key.point.data(), key.point.size()}, part[0], part[1]});
  std::array<unsigned char, 32> scalar;
  crypto_eddsa_reduce(scalar.data(), hash.data());
  return crypto_eddsa_check_equation(signature.data(), key.point.data(), scalar.data()) == 0;
}

PublicKey read_key(const std::string& path) {
  const auto refuse = [&path](const auto&... why) {
    fail(Status::kInvalidArgument, kTrustVariable, " has '", utf8(path), "', which ", why...);
  };
  const std::optional<std::string> text = read_text(path, /*must_be_own=*/true);
  if (!text && errno == EPERM) {
    refuse("belongs to another user, or others may write to it; make it this user's alone");
  }
  if (!text) refuse("cannot be read: ", std::strerror(errno));
  const std::vector<std::string> lines = lines_of(text.value_or(""));
  std::optional<KeyText> key;
  if (lines.size() >= 2 && begins(lines[0], kUntrusted)) key = decoded<KeyText>(lines[1]);
  if (!key || std::string_view(key->kind, 2) != kKey) {
    fail(Status::kInvalidArgument, kTrustVariable, " has '", utf8(path),
         "', which is no public key of minisign's; name the file that minisign -G writes, "
         "minisign.pub");
  }
  return key.value().key;
}

}  // namespace

std::vector<PublicKey> trusted_keys() {
  std::vector<PublicKey> keys;
  std::istringstream paths(variable(kTrustVariable));
  for (std::string path; std::getline(paths, path, ':');) {
    if (path.empty()) continue;
    if (path[0] != '/') {
      fail(Status::kInvalidArgument, kTrustVariable, " has '", utf8(path),
           "', but must have absolute paths, parted by colons: the working directory differs ",
           "between processes");
    }
    keys.push_back(read_key(path));
  }
  return keys;
}

struct SignedContent::State {
  crypto_blake2b_ctx context;
};

SignedContent::SignedContent() : state_(std::make_unique<State>()) {
  crypto_blake2b_init(&state_->context, 64);
}

SignedContent::~SignedContent() = default;

void SignedContent::add(const void* data, size_t size) {
  crypto_blake2b_update(&state_->context, static_cast<const uint8_t*>(data), size);
}

std::array<unsigned char, 64> SignedContent::hash() {
  std::array<unsigned char, 64> made;
  crypto_blake2b_final(&state_->context, made.data());
  return made;
}

std::string verify_signature(const std::string& file, const std::array<unsigned char, 64>& hash,
                             const std::vector<PublicKey>& trusted) {
  const std::optional<std::string> text = read_text(file, /*must_be_own=*/false);
  if (!text) {
    fail(Status::kUnsupported, "has no signature '", utf8(file), "': ", std::strerror(errno));
  }
  return verify_signature_text(*text, file, hash, trusted);
}

std::string verify_signature_text(std::string_view text, const std::string& name,
                                  const std::array<unsigned char, 64>& hash,
                                  const std::vector<PublicKey>& trusted) {
  const auto refuse = [&name](const auto&... why) {
    fail(Status::kCorrupt, "has a signature '", utf8(name), "', which ", why...);
  };
  const std::vector<std::string> lines = lines_of(text);
  std::optional<SignatureText> made;
  std::optional<Signature> of_comment;
  if (lines.size() >= 4 && begins(lines[0], kUntrusted) && begins(lines[2], kTrusted)) {
    made = decoded<SignatureText>(lines[1]);
    of_comment = decoded<Signature>(lines[3]);
  }
  const std::string_view kind(made ? made->kind : "", made ? 2 : 0);
  if (!made || !of_comment || (kind != kOfHash && kind != kOfFile)) {
    fail(Status::kCorrupt, "has a signature '", utf8(name), "', which is none of minisign's");
  }
  if (kind != kOfHash) refuse("is of minisign's old kind; sign it again, without -l");
  const SignatureText& of_file = made.value();
  const auto key = std::find_if(trusted.begin(), trusted.end(),
                                [&](const PublicKey& each) { return each.id == of_file.id; });
  if (key == trusted.end()) {
    fail(Status::kUnsupported, "is signed by the key ", number(of_file.id),
         ", which is not trusted: name its file in ", kTrustVariable, " if you trust its owner");
  }
  const std::string comment = lines[2].substr(kTrusted.size());
  if (!is_signed(of_file.signature, *key, {{hash.data(), hash.size()}, {"", 0}})) {
    refuse("is not of this file's bytes");
  }
  if (!is_signed(of_comment.value(), *key,
                 {{of_file.signature.data(), of_file.signature.size()},
                  {comment.data(), comment.size()}})) {
    refuse("has a comment that is not signed");
  }
  return number(key->id);
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
