// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Signatures of files, as minisign (and signify's successors) make them: FILE.minisig beside FILE,
// Ed25519 over the BLAKE2b of the file. They are verified offline, by public keys that the user
// trusts.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace AITER_ATTN_NAMESPACE::runtime {

inline constexpr char kTrustVariable[] = "AITER_ATTN_TRUST";
inline constexpr char kSignatureSuffix[] = ".minisig";
inline constexpr size_t kMostSignatureBytes = 4096;

// A public key of minisign's.
struct PublicKey {
  std::array<unsigned char, 8> id;
  std::array<unsigned char, 32> point;
};

// The keys in the files that AITER_ATTN_TRUST names by absolute paths, parted by colons. Throws
// Status::kInvalidArgument where a path is relative, or its file is no public key of minisign's, or
// is another user's, or others may write to it.
std::vector<PublicKey> trusted_keys();

// The BLAKE2b of a file's content, which comes in pieces.
class SignedContent {
 public:
  SignedContent();
  ~SignedContent();
  SignedContent(const SignedContent&) = delete;
  SignedContent& operator=(const SignedContent&) = delete;

  void add(const void* data, size_t size);
  // After all of it.
  std::array<unsigned char, 64> hash();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// The name of the trusted key by which a signature file signs content of this hash: minisign's
// number for it. Throws Status::kUnsupported where there is no such file or its key is not trusted,
// Status::kCorrupt where it does not sign this.
std::string verify_signature(const std::string& file, const std::array<unsigned char, 64>& hash,
                             const std::vector<PublicKey>& trusted);
// The same of the text of a signature file; name: of that, for messages.
std::string verify_signature_text(std::string_view text, const std::string& name,
                                  const std::array<unsigned char, 64>& hash,
                                  const std::vector<PublicKey>& trusted);

}  // namespace AITER_ATTN_NAMESPACE::runtime
