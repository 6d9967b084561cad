// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/machine_cache.h"

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/store/cache_limit.h"
#include "aiter/runtime/store/cached_file.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {

std::string machine_cache_folder() {
  std::string folder = variable(kMachineCacheVariable);
  if (folder.empty() || folder[0] == '/') return folder;
  fail(Status::kInvalidArgument, kMachineCacheVariable, " is '", utf8(folder),
       "', but must be an absolute path: the working directory differs between processes");
}

std::string MachineCacheProvider::name() const {
  return concat("the machine's cache '", utf8(folder_), "'");
}

std::optional<Bytes> MachineCacheProvider::get(const CodeObjectRef& ref) {
  std::string refused;
  std::optional<Bytes> bytes =
      read_cached_file(concat(folder_, "/code-objects/", hex(ref.key), kObjectSuffix), ref,
                       CacheOwner::kAnybody, refused);
  if (!refused.empty()) fail(Status::kCorrupt, refused, ", and is not believed");
  return bytes;
}

Answer MachineCacheProvider::look(const CodeObjectRef& ref) {
  return get(ref) ? Answer{true, "has it"} : Answer{};
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
