// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Packs of code objects (aiter/runtime/store/pack.h) for tests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "aiter/runtime/store/pack.h"

namespace AITER_ATTN_NAMESPACE::testing {

// The entries are right; a test that wants another digest writes it where the entry says.
std::vector<unsigned char> make_pack(const std::map<runtime::Digest, runtime::Bytes>& objects);

// The file of a pack (aiter/runtime/store/pack_file.h), right in all.
std::vector<unsigned char> make_pack_file(const std::map<runtime::Digest, runtime::Bytes>& objects,
                                          const std::string& version);

// Objects that have enough in common for a pack of them to have a dictionary.
std::map<runtime::Digest, runtime::Bytes> similar_objects();

}  // namespace AITER_ATTN_NAMESPACE::testing
