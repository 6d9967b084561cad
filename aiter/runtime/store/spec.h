// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The spec of a code object, which says how it is made, and the key that follows from it. The build
// computes both the same way (kernels/code_object/spec.py); spec_test.cc and its Python counterpart
// share a golden.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "aiter/runtime/store/digest.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// All that can change a code object's bytes. Text is printable ASCII.
struct CodeObjectSpec {
  std::string arch;                // "gfx942"
  std::vector<std::string> flags;  // every flag of the compile, in order; paths in logical form
  std::string headers;             // digest of the header tree that the source is compiled against
  std::string source;              // digest of the source
  std::string toolchain;           // identity of the compiler and of its libraries and headers
  std::string group;  // digest of the sources that are compiled together; empty: it is alone

  // Reads canonical(); throws Status::kInvalidArgument where text is anything else.
  static CodeObjectSpec parse(std::string_view text);
  // JSON without spaces, its names in alphabetical order: one text for one spec. Throws
  // Status::kInvalidArgument where a field is not printable ASCII.
  std::string canonical() const;
  // The sha256 of canonical().
  Digest key() const;
  // The spec of the object that the source's own compile gives.
  CodeObjectSpec alone() const;
};

// The part that the specs of many code objects share: all but the source and the arch.
struct Recipe {
  std::vector<std::string> flags;
  std::string headers;
  std::string toolchain;

  // Reads serialised(); throws Status::kInvalidArgument where text is anything else.
  static Recipe parse(std::string_view text);
  // JSON, as canonical() of a spec is.
  std::string serialised() const;
  // The spec of a source (by its digest) that is compiled with these flags behind the recipe's.
  CodeObjectSpec spec(std::string source, std::string arch,
                      const std::vector<std::string>& more_flags) const;
};

// A source or a header, by the name that #include and messages give it.
struct SourceFile {
  std::string name;
  std::string text;
};

// `headers` of a spec: a digest over the tree's files, in any order.
std::string header_tree_digest(const std::vector<SourceFile>& files);

}  // namespace AITER_ATTN_NAMESPACE::runtime
