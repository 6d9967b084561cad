// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/pack_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <mutex>
#include <utility>

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/fork_mutex.h"
#include "aiter/runtime/store/file.h"
#include "aiter/runtime/store/pack.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr char kPathVariable[] = "AITER_ATTN_PACK_PATH";
constexpr char kMagic[8] = {'A', 'T', 'T', 'N', 'P', 'K', 'F', '1'};
// A larger claim is no index, and is given no memory.
constexpr uint64_t kMostIndexBytes = uint64_t{256} << 20;

struct Header {
  char magic[sizeof(kMagic)];
  char version[32];
  char name[64];
  uint64_t pack_size;
  uint64_t index_size;
  Digest index_sha256;
};
static_assert(sizeof(Header) == 152);

// As far as it is printable: the file may be anybody's.
template <size_t kSize>
std::string text_of(const char (&field)[kSize]) {
  return utf8(std::string(field, ::strnlen(field, kSize)));
}

// The pack in an open file: its index in memory, the rest read when it is asked for. It is not
// mapped: a file that is cut off meanwhile would end the process.
class FileData : public PackData {
 public:
  FileData(std::string name, std::unique_ptr<const File> file, uint64_t size, Bytes index)
      : name_(std::move(name)), file_(std::move(file)), size_(size), index_(std::move(index)) {}
  uint64_t size() const override { return size_; }
  const unsigned char* at(uint64_t offset, uint64_t size, Bytes& room) const override {
    if (offset <= index_.size() && size <= index_.size() - offset) return index_.data() + offset;
    room.resize(size);
    if (!read_all_at(file_->get(), room.data(), size, sizeof(Header) + offset)) {
      fail(Status::kCorrupt, name_, " was cut off after it was opened; install it again");
    }
    return room.data();
  }

 private:
  const std::string name_;
  const std::unique_ptr<const File> file_;
  const uint64_t size_;
  const Bytes index_;
};

// The signature of a whole file, which is read for it when that is first asked for.
class FileSignature {
 public:
  // data: the pack that follows the header; it outlives this.
  FileSignature(std::string path, const Header& header, const PackData& data,
                std::vector<PublicKey> trusted)
      : path_(std::move(path)), header_(header), data_(data), trusted_(std::move(trusted)) {}

  // The key that signs it. Throws as verify_signature() does. Threads that come at the same time
  // each read the file: a lock that one held meanwhile would stay locked in a child that is forked
  // then.
  std::string key() {
    Found found = found_already();
    if (found.key.empty() && !found.error) {
      try {
        found.key = verify_signature(path_ + kSignatureSuffix, hash(), trusted_);
      } catch (const Error&) {
        found.error = std::current_exception();
      }
      const std::lock_guard<ForkMutex> lock(mutex_);
      found_ = found;
    }
    if (found.error) std::rethrow_exception(found.error);
    return found.key;
  }

 private:
  // One of both; neither: the file was not read yet.
  struct Found {
    std::string key;
    std::exception_ptr error;
  };

  Found found_already() {
    const std::lock_guard<ForkMutex> lock(mutex_);
    return found_;
  }

  std::array<unsigned char, 64> hash() const {
    constexpr uint64_t kPiece = 1 << 20;
    SignedContent content;
    content.add(&header_, sizeof(header_));
    Bytes room;
    for (uint64_t at = 0; at < data_.size(); at += kPiece) {
      const uint64_t size = std::min(kPiece, data_.size() - at);
      content.add(data_.at(at, size, room), size);
    }
    return content.hash();
  }

  const std::string path_;
  const Header header_;
  const PackData& data_;
  const std::vector<PublicKey> trusted_;
  ForkMutex mutex_;
  Found found_;
};

// A pack of which objects are believed by the digests that the library knows; others, by the
// signature of the file.
class PackFile : public Provider {
 public:
  PackFile(std::string name, std::unique_ptr<const PackData> data, const std::string& path,
           const Header& header, std::vector<PublicKey> trusted)
      : signature_(path, header, *data, std::move(trusted)),
        pack_(std::move(name), std::move(data)) {}
  std::string name() const override { return pack_.name(); }
  std::optional<Bytes> get(const CodeObjectRef& ref) override {
    if (!look(ref).has) return std::nullopt;
    return pack_.get(ref);
  }
  Answer look(const CodeObjectRef& ref) override {
    const std::optional<PackEntry> found = pack_.find(ref.key);
    if (!found) return {};
    if (!ref.sha256) {
      try {
        return {true, concat("has it, signed by the key ", signature_.key())};
      } catch (const Error& error) {
        fail(error.status(), "has it, but nothing proves its bytes: this library knows no digest ",
             "of them, and the pack ", error.what());
      }
    }
    if (*ref.sha256 != found->sha256) {
      fail(Status::kCorrupt, "has it with sha256 ", hex(found->sha256), " instead of ",
           hex(*ref.sha256), "; install the pack of this library's build");
    }
    return {true, "has it"};
  }

 private:
  FileSignature signature_;
  PackProvider pack_;
};

// A file or a folder that cannot be used.
class Refused : public Provider {
 public:
  Refused(std::string name, std::exception_ptr why)
      : name_(std::move(name)), why_(std::move(why)) {}
  std::string name() const override { return name_; }
  std::optional<Bytes> get(const CodeObjectRef&) override { std::rethrow_exception(why_); }
  Answer look(const CodeObjectRef&) override { std::rethrow_exception(why_); }

 private:
  const std::string name_;
  const std::exception_ptr why_;
};

std::string name_of(const std::string& path) { return concat("pack '", utf8(path), "'"); }

// The pack files of a place. Throws Status::kUnsupported where it cannot be read.
std::vector<std::string> files_of(const std::string& place) {
  struct stat status;
  if (::stat(place.c_str(), &status) != 0) {
    fail(Status::kUnsupported, "cannot be found: ", std::strerror(errno));
  }
  if (!S_ISDIR(status.st_mode)) return {place};
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(place.c_str()), ::closedir);
  if (!listing) fail(Status::kUnsupported, "cannot be read: ", std::strerror(errno));
  std::vector<std::string> files;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (name.size() > kPackSuffix.size() &&
        name.substr(name.size() - kPackSuffix.size()) == kPackSuffix) {
      files.push_back(concat(place, "/", name));
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::unique_ptr<Provider> open_pack_file(const std::string& path, std::string_view version,
                                         const std::vector<PublicKey>& trusted) {
  auto file = std::make_unique<const File>(path, O_RDONLY, File::Links::kFollowed);
  if (!*file) fail(Status::kUnsupported, "cannot be opened: ", std::strerror(errno));
  struct stat status;
  Header header;
  if (::fstat(file->get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    fail(Status::kUnsupported, "is no regular file");
  }
  constexpr size_t kFormat = sizeof(kMagic) - 1;
  if (!read_all(file->get(), &header, sizeof(header)) ||
      std::memcmp(header.magic, kMagic, kFormat) != 0) {
    fail(Status::kCorrupt, "is no file of a pack, which //python:kernels_wheel makes");
  }
  if (header.magic[kFormat] != kMagic[kFormat]) {
    fail(Status::kUnsupported, "is of format '", utf8({&header.magic[kFormat], 1}),
         "', but this library reads ", kMagic[kFormat], "; install the pack of this version, ",
         version);
  }
  const std::string made_with = text_of(header.version), distribution = text_of(header.name);
  if (made_with != version) {
    fail(Status::kUnsupported, "was made with aiter-attn ", made_with, ", but this is ", version,
         "; install ", distribution, "==", version);
  }
  const auto file_size = static_cast<uint64_t>(status.st_size);
  if (header.pack_size != file_size - sizeof(header)) {
    fail(Status::kCorrupt, "has ", file_size - sizeof(header), " bytes of a pack instead of ",
         header.pack_size, "; install ", distribution, " again");
  }
  if (header.index_size > std::min(header.pack_size, kMostIndexBytes)) {
    fail(Status::kCorrupt, "has an index of ", header.index_size, " bytes, more than it may have");
  }
  Bytes index(header.index_size);
  if (!read_all(file->get(), index.data(), index.size()) ||
      sha256(index.data(), index.size()) != header.index_sha256) {
    fail(Status::kCorrupt, "has a damaged index; install ", distribution, " again");
  }
  const std::string name = name_of(path);
  return std::make_unique<PackFile>(
      name,
      std::make_unique<const FileData>(name, std::move(file), header.pack_size, std::move(index)),
      path, header, trusted);
}

std::vector<std::unique_ptr<Provider>> pack_files(const std::vector<std::string>& places,
                                                  std::string_view version,
                                                  const std::vector<PublicKey>& trusted) {
  std::vector<std::unique_ptr<Provider>> providers;
  const auto refuse = [&providers](const std::string& path) {
    providers.push_back(std::make_unique<Refused>(name_of(path), std::current_exception()));
  };
  for (const std::string& place : places) {
    std::vector<std::string> files;
    try {
      files = files_of(place);
    } catch (const Error&) {
      refuse(place);
    }
    for (const std::string& file : files) {
      try {
        providers.push_back(open_pack_file(file, version, trusted));
      } catch (const Error&) {
        refuse(file);
      }
    }
  }
  return providers;
}

std::vector<std::string> named_pack_places() {
  std::vector<std::string> places;
  const std::string value = variable(kPathVariable);
  for (size_t start = 0; start <= value.size();) {
    const size_t end = std::min(value.find(':', start), value.size());
    const std::string place = value.substr(start, end - start);
    start = end + 1;
    if (place.empty()) continue;
    if (place[0] != '/') {
      fail(Status::kInvalidArgument, kPathVariable, " has '", utf8(place),
           "', but must have absolute paths, parted by colons: the working directory differs ",
           "between processes");
    }
    places.push_back(place);
  }
  return places;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
