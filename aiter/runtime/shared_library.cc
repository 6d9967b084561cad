// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/shared_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;

std::string dl_error() {
  const char* text = dlerror();
  return text ? utf8(text) : "no text";
}

const link_map* map_of(void* handle) {
  const link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0) {
    fail(Status::kInternal, "dlinfo failed: ", dl_error());
  }
  return map;
}

constexpr char kDigits[] = "0123456789abcdef";

struct BuildIdSearch {
  ElfW(Addr) base;
  std::string hex;
};

// A note's header is followed by its name and its contents, each padded to the segment's alignment.
void read_notes(const ElfW(Phdr) & segment, BuildIdSearch* search) {
  const size_t alignment = segment.p_align == 8 ? 8 : 4;
  const auto padded = [&](size_t size) { return (size + alignment - 1) / alignment * alignment; };
  const auto* notes = reinterpret_cast<const unsigned char*>(search->base + segment.p_vaddr);
  size_t at = 0;
  while (segment.p_memsz - at >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof(note));
    const size_t contents = at + padded(sizeof(note) + note.n_namesz);
    const size_t end = contents + padded(note.n_descsz);
    if (end > padded(segment.p_memsz)) return;  // not a note
    const bool gnu = note.n_namesz == 4 && std::memcmp(notes + at + sizeof(note), "GNU", 4) == 0;
    if (gnu && note.n_type == NT_GNU_BUILD_ID) {
      for (size_t i = contents; i < contents + note.n_descsz; ++i) {
        search->hex += kDigits[notes[i] >> 4];
        search->hex += kDigits[notes[i] & 15];
      }
      return;
    }
    at = end;
    if (at > segment.p_memsz) return;
  }
}

int visit(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<BuildIdSearch*>(data);
  if (info->dlpi_addr != search->base) return 0;
  for (int i = 0; i < info->dlpi_phnum && search->hex.empty(); ++i) {
    if (info->dlpi_phdr[i].p_type == PT_NOTE) read_notes(info->dlpi_phdr[i], search);
  }
  return 1;
}

}  // namespace

SharedLibrary::SharedLibrary(void* handle, std::string file)
    : handle_(handle), file_(std::move(file)) {
  const char* known = map_of(handle_)->l_name;
  if (known && *known) file_ = known;
}

SharedLibrary SharedLibrary::open(const LibrarySearch& search) {
  if (const std::string named = variable(search.variable); !named.empty()) {
    if (void* handle = dlopen(named.c_str(), kFlags)) return {handle, named};
    fail(Status::kDriver, "cannot load the ", search.what, " '", utf8(named), "' that ",
         search.variable, " names: ", dl_error(), "; name another file, or unset the variable");
  }
  // A library that a framework brought along is likely to fit the driver that it runs on.
  if (std::optional<SharedLibrary> library = loaded_one_of(search.sonames)) return *library;
  std::string reasons;
  const auto attempt = [&](const std::string& file) -> std::optional<SharedLibrary> {
    if (void* handle = dlopen(file.c_str(), kFlags)) return SharedLibrary(handle, file);
    reasons += (reasons.empty() ? "" : "; ") + dl_error();
    return std::nullopt;
  };
  for (const std::string& file : search.files) {
    if (access(file.c_str(), F_OK) != 0) continue;
    if (std::optional<SharedLibrary> library = attempt(file)) return *library;
  }
  for (const std::string& soname : search.sonames) {
    if (std::optional<SharedLibrary> library = attempt(soname)) return *library;
  }
  fail(Status::kDriver, "no ", search.what, " on this machine (", reasons, "); ", search.remedy,
       ", or name its file in ", search.variable);
}

std::optional<SharedLibrary> SharedLibrary::loaded_one_of(const std::vector<std::string>& sonames) {
  for (const std::string& soname : sonames) {
    if (void* handle = dlopen(soname.c_str(), kFlags | RTLD_NOLOAD)) {
      return SharedLibrary(handle, soname);
    }
  }
  return std::nullopt;
}

std::optional<SharedLibrary> SharedLibrary::open_one_of(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), kFlags)) return SharedLibrary(handle, name);
  }
  return std::nullopt;
}

void* SharedLibrary::address(const std::string& symbol, const std::string& versions) const {
  if (void* found = dlsym(handle_, symbol.c_str())) return found;
  fail(Status::kDriver, path(), " has no ", symbol, ": this library needs ", versions);
}

std::string SharedLibrary::path() const { return utf8(file_); }

std::string SharedLibrary::identity() const {
  if (std::string id = build_id(); !id.empty()) return id;
  struct stat status;
  if (::stat(file_.c_str(), &status) != 0) {
    fail(Status::kDriver, "cannot tell which ", path(), " is loaded: ", std::strerror(errno));
  }
  const uint64_t nanoseconds = uint64_t{1000000000} * static_cast<uint64_t>(status.st_mtim.tv_sec) +
                               static_cast<uint64_t>(status.st_mtim.tv_nsec);
  return concat("file ", status.st_size, ".", nanoseconds);
}

// "": it has none, or none that is loaded: NVRTC 12.8's is a section of the file alone.
std::string SharedLibrary::build_id() const {
  BuildIdSearch search = {map_of(handle_)->l_addr, {}};
  dl_iterate_phdr(visit, &search);
  return search.hex;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
