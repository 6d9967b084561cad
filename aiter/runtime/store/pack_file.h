// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Packs in files, NAME.attnpack, that are installed beside the library or that a user names. All
// numbers are little-endian:
//
//   magic "ATTNPKF1", the version of the library that it was made with: char[32], the name of its
//   distribution: char[64], both padded with zeros; uint64 size of the pack, uint64 size of its
//   index, sha256[32] of the index; the pack (pack.h), which begins with its index: all but frames
//
// Anybody may have written such a file. The index is held against its digest when the file is
// opened, and an object against the digest that the library knows of it: where it knows none, the
// object is believed if a key that the user trusts signs the whole file (signature.h), beside which
// NAME.attnpack.minisig lies.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aiter/runtime/store/signature.h"
#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

inline constexpr std::string_view kPackSuffix = ".attnpack";

// The pack in a file, for a library of this version. The file stays open: it serves although it is
// renamed or removed. Throws Status::kUnsupported where it cannot be opened or was made with
// another version of the library, Status::kCorrupt where it is damaged.
std::unique_ptr<Provider> open_pack_file(const std::string& path, std::string_view version,
                                         const std::vector<PublicKey>& trusted = {});

// A provider for each pack file that `places` name: files, and folders of them by their names'
// order. One that cannot be used is a provider that has nothing and says why.
std::vector<std::unique_ptr<Provider>> pack_files(const std::vector<std::string>& places,
                                                  std::string_view version,
                                                  const std::vector<PublicKey>& trusted = {});

// The paths in AITER_ATTN_PACK_PATH, parted by colons. Throws Status::kInvalidArgument where one is
// relative.
std::vector<std::string> named_pack_places();

}  // namespace AITER_ATTN_NAMESPACE::runtime
