// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "tests/support/runtime/minisign.h"

#include <array>
#include <cstdint>

#include "aiter/runtime/store/sha512.h"
#include "aiter/runtime/store/signature.h"
#include "monocypher.h"

namespace AITER_ATTN_NAMESPACE::testing {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr char kSeed[] = "a seed of thirty-two bytes, or so";

std::string base64(const Bytes& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = i; j < i + 3; ++j) group = group << 8 | (j < bytes.size() ? bytes[j] : 0);
    for (size_t j = 0; j < 4; ++j) {
      text += i + j > bytes.size() ? '=' : kDigits[group >> (18 - 6 * j) & 63];
    }
  }
  return text;
}

// Ed25519's secret key (RFC 8032): a scalar, and a prefix of what nonces are made of.
struct Key {
  Key() {
    const runtime::Digest512 hash = runtime::sha512({{kSeed, 32}, {"", 0}});
    crypto_eddsa_trim_scalar(scalar.data(), hash.data());
    prefix.assign(hash.begin() + 32, hash.end());
    crypto_eddsa_scalarbase(point.data(), scalar.data());
  }
  Bytes sign(const Bytes& message) const {
    std::array<unsigned char, 32> nonce, challenge;
    Bytes signature(64);
    const auto part = [](const auto& bytes) {
      return std::pair<const void*, size_t>(bytes.data(), bytes.size());
    };
    crypto_eddsa_reduce(nonce.data(), runtime::sha512({part(prefix), part(message)}).data());
    crypto_eddsa_scalarbase(signature.data(), nonce.data());
    crypto_eddsa_reduce(
        challenge.data(),
        runtime::sha512({{signature.data(), 32}, part(point), part(message)}).data());
    crypto_eddsa_mul_add(&signature[32], challenge.data(), scalar.data(), nonce.data());
    return signature;
  }

  std::array<unsigned char, 32> scalar, point;
  Bytes prefix;
};

Bytes labelled(const std::string& kind, const Bytes& bytes) {
  const std::string start = kind + "12345678";
  Bytes all(start.begin(), start.end());
  all.insert(all.end(), bytes.begin(), bytes.end());
  return all;
}

}  // namespace

std::string minisign_key() {
  const Key key;
  return "untrusted comment: minisign public key\n" +
         base64(labelled("Ed", {key.point.begin(), key.point.end()})) + "\n";
}

std::string minisign(const std::vector<unsigned char>& bytes) {
  const Key key;
  runtime::SignedContent content;
  content.add(bytes.data(), bytes.size());
  const auto hash = content.hash();
  Bytes signature = key.sign({hash.begin(), hash.end()});
  const std::string comment = "timestamp:0";
  const std::string first = base64(labelled("ED", signature));
  signature.insert(signature.end(), comment.begin(), comment.end());
  return "untrusted comment: signature\n" + first + "\ntrusted comment: " + comment + "\n" +
         base64(key.sign(signature)) + "\n";
}

}  // namespace AITER_ATTN_NAMESPACE::testing
