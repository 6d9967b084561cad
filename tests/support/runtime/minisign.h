// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Keys and signatures as minisign makes them, for tests.
#pragma once

#include <string>
#include <vector>

namespace AITER_ATTN_NAMESPACE::testing {

// The file of the one public key that there is here.
std::string minisign_key();
// The signature of a file's bytes by that key.
std::string minisign(const std::vector<unsigned char>& bytes);

}  // namespace AITER_ATTN_NAMESPACE::testing
