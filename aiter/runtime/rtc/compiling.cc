// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/rtc/compiling.h"

namespace AITER_ATTN_NAMESPACE::runtime {

std::optional<Bytes> CompilingProvider::get(const CodeObjectRef& ref) {
  if (!may_have(ref)) return std::nullopt;
  const CodeObjectSpec spec = ref.spec();
  const SourceFile& source = *ref.source;
  if (spec.source != hex(sha256(source.text.data(), source.text.size())) ||
      spec.headers != header_tree_digest(*ref.headers)) {
    return std::nullopt;
  }
  const Compiler& compiler = compilers_.for_arch(spec.arch);
  if (spec.toolchain != compiler.identity()) return std::nullopt;
  return compiler.compile(source, *ref.headers, spec.flags, spec.arch);
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
