// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A shared library of others that is found when it is first needed, so that neither building nor
// loading this library needs it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace AITER_ATTN_NAMESPACE::runtime {

// Where a library is looked for, in this order.
struct LibrarySearch {
  std::string what;                  // "NVRTC"
  const char* variable;              // names its file in the environment; nothing else counts then
  std::vector<std::string> sonames;  // the newest first: one that is loaded; at last, the system's
  std::vector<std::string> files;    // absolute, tried before the system's
  std::string remedy;                // the package to install
};

class SharedLibrary {
 public:
  // Throws Status::kDriver with each reason, and the remedy. The library stays loaded for good:
  // others may have its functions.
  static SharedLibrary open(const LibrarySearch& search);
  // The first of `sonames` that the process has loaded.
  static std::optional<SharedLibrary> loaded_one_of(const std::vector<std::string>& sonames);
  // The first of `names`, files or sonames, that can be loaded.
  static std::optional<SharedLibrary> open_one_of(const std::vector<std::string>& names);

  // Throws Status::kDriver where the library has no such function; `versions` says which have.
  template <typename F>
  void bind(const std::string& symbol, const std::string& versions, F* function) const {
    *function = reinterpret_cast<F>(address(symbol, versions));
  }

  // Its file, as text, for messages; and as the loader names it.
  std::string path() const;
  const std::string& file() const { return file_; }
  // A text that tells its contents from those of other files: the linker's build ID, in hex; where
  // the linker made none, "file SIZE.TIME", which costs less than the digest of some 100 MB.
  std::string identity() const;

 private:
  SharedLibrary(void* handle, std::string file);
  void* address(const std::string& symbol, const std::string& versions) const;
  std::string build_id() const;

  void* handle_;
  std::string file_;
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
