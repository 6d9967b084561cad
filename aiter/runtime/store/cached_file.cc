// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/cached_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "aiter/runtime/error.h"
#include "aiter/runtime/store/cache_limit.h"
#include "aiter/runtime/store/file.h"
#include "aiter/runtime/store/kernel_metadata.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr char kMagic[8] = {'A', 'T', 'T', 'N', 'O', 'B', 'J', '1'};

}  // namespace

CachedFileHeader cached_file_header(const Digest& key, const Bytes& bytes) {
  CachedFileHeader header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.key = key;
  header.sha256 = sha256(bytes.data(), bytes.size());
  header.size = bytes.size();
  return header;
}

std::optional<Bytes> object_of_file(const Bytes& file, const Digest& key, std::string& refused) {
  CachedFileHeader header;
  const auto refuse = [&](const auto&... why) {
    refused = concat(why...);
    return std::nullopt;
  };
  if (file.size() < sizeof(header)) return refuse("is cut off: it has ", file.size(), " bytes");
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    return refuse("is no code object of a cache");
  }
  if (header.key != key) return refuse("is the code object of the key ", hex(header.key));
  if (header.size != file.size() - sizeof(header)) {
    return refuse("is cut off: it has ", file.size(), " bytes");
  }
  Bytes bytes(file.begin() + sizeof(header), file.end());
  if (const Digest digest = sha256(bytes.data(), bytes.size()); digest != header.sha256) {
    return refuse("has sha256 ", hex(digest), " instead of ", hex(header.sha256));
  }
  return bytes;
}

std::optional<Bytes> read_cached_file(const std::string& path, const CodeObjectRef& ref,
                                      CacheOwner owner, std::string& refused) {
  refused.clear();
  const auto refuse = [&](const auto&... why) {
    refused = concat("'", utf8(path), "' ", why...);
    return std::nullopt;
  };
  const File file(path, O_RDONLY);
  if (!file && errno == ELOOP) return refuse("is a link");
  if (!file) return std::nullopt;
  CachedFileHeader header;
  struct stat status;
  if (::fstat(file.get(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode)) return refuse("is no regular file");
  // Where a digest is known, it alone decides.
  const bool is_anybodys = owner == CacheOwner::kAnybody && ref.sha256;
  if (!is_anybodys && !is_trusted(status)) {
    return refuse("belongs to another user, or others may write to it");
  }
  // An error of the disk or of the network says nothing about the file, and may pass.
  errno = 0;
  if (!read_all(file.get(), &header, sizeof(header))) {
    if (errno != 0) return std::nullopt;
    return refuse("is cut off: it has ", status.st_size, " bytes");
  }
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    return refuse("is no code object of a cache");
  }
  if (header.key != ref.key) return refuse("is the code object of the key ", hex(header.key));
  // The size is believed only where the file has it; a file with holes may have any.
  if (header.size > kMostObjectBytes ||
      header.size != static_cast<uint64_t>(status.st_size) - sizeof(header)) {
    return refuse("is cut off: it has ", status.st_size, " bytes");
  }
  Bytes bytes(header.size);
  if (!read_all(file.get(), bytes.data(), bytes.size())) {
    if (errno != 0) return std::nullopt;
    return refuse("was cut off while it was read");
  }
  const Digest digest = sha256(bytes.data(), bytes.size());
  const Digest& expected = ref.sha256 ? *ref.sha256 : header.sha256;
  if (digest != header.sha256 || digest != expected) {
    return refuse("has sha256 ", hex(digest), " instead of ", hex(expected));
  }
  if (const std::string why = misfit(ref, bytes); !why.empty()) return refuse(why);
  if (owner == CacheOwner::kUser) mark_as_used(file.get());
  return bytes;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
