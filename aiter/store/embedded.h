// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The code objects that are linked into the library, one zstd frame each.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "aiter/store/store.h"

namespace aiter_attn {

class EmbeddedProvider : public Provider {
 public:
  // table must outlive the provider.
  explicit EmbeddedProvider(const LaunchTable& table);
  std::string name() const override { return "embedded"; }
  bool get(std::string_view key, Bytes* bytes) override;

 private:
  std::unordered_map<std::string_view, const CodeObject*> objects_;
};

}  // namespace aiter_attn
