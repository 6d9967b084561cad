// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The code-object store: an ordered list of providers, asked one after the other for the bytes of a
// key. Whatever the source, the bytes of a key are the same.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aiter/launch_table.h"

namespace aiter_attn {

using Bytes = std::vector<unsigned char>;

// One source of code objects. Safe to call from several threads.
class Provider {
 public:
  virtual ~Provider() = default;
  virtual std::string name() const = 0;
  // Writes the verified bytes of key; false where this provider does not have it. Throws
  // ATTN_ERROR_CORRUPT, naming the key, where it has bytes but not the right ones.
  virtual bool get(std::string_view key, Bytes* bytes) = 0;
};

class Store {
 public:
  explicit Store(std::vector<std::unique_ptr<Provider>> providers);
  // The bytes of key from the first provider that has it. Throws ATTN_ERROR_UNSUPPORTED, naming
  // the key and the providers, where none has, and passes on what a provider throws.
  Bytes get(std::string_view key) const;

 private:
  std::vector<std::unique_ptr<Provider>> providers_;
};

// The library's own store: what is embedded in it.
const Store& library_store();

}  // namespace aiter_attn
