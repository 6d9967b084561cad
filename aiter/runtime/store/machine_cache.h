// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A cache that all users of a machine, or of a file system, share: it is read, and never written.
#pragma once

#include <optional>
#include <string>

#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

inline constexpr char kMachineCacheVariable[] = "AITER_ATTN_MACHINE_CACHE";

// The folder that the variable names, "" where it is not set. Throws Status::kInvalidArgument where
// it is relative.
std::string machine_cache_folder();

// `folder` is laid out as the folder that AITER_ATTN_CACHE_DIR names is. A file whose digest the
// ref has may belong to anybody. One that is proven by its own head alone must be this user's or
// root's, and others must not be able to write to it.
class MachineCacheProvider : public Provider {
 public:
  explicit MachineCacheProvider(std::string folder) : folder_(std::move(folder)) {}
  std::string name() const override;
  std::optional<Bytes> get(const CodeObjectRef& ref) override;
  Answer look(const CodeObjectRef& ref) override;

 private:
  const std::string folder_;
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
