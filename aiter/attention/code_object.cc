// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/code_object.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "aiter/attention/problem/error.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

// Of an object with a recipe.
runtime::CodeObjectSpec spec_of(const kernels::LaunchTable& table,
                                const kernels::CodeObjectRow& object) {
  runtime::CodeObjectSpec spec =
      runtime::Recipe::parse(table.recipe(object))
          .spec(runtime::hex(digest(object.source)), std::string(table.arch(object)), {});
  spec.group = table.group(object);
  return spec;
}

// Of the first row that has it.
std::string name_of(const kernels::LaunchTable& table, const kernels::CodeObjectRow& object) {
  for (uint32_t i = 0; i < table.row_count(); ++i) {
    for (uint32_t arch = 0; arch < table.arch_count(); ++arch) {
      const kernels::Row& row = table.row(i);
      if (table.object(row, static_cast<int>(arch)) == &object) return std::string(table.name(row));
    }
  }
  return "a kernel";
}

}  // namespace

runtime::Digest digest(const uint8_t (&bytes)[32]) {
  runtime::Digest digest;
  std::copy(std::begin(bytes), std::end(bytes), digest.begin());
  return digest;
}

runtime::CodeObjectRef code_object_ref(const kernels::LaunchTable& table,
                                       const kernels::CodeObjectRow& object) {
  runtime::CodeObjectRef ref = {digest(object.key), digest(object.sha256)};
  if (*ref.sha256 == runtime::Digest{}) ref.sha256.reset();  // no bytes were built
  ref.remedy = [&table, &object] {
    std::string text;
    if (object.size != 0) {
      text = concat("install its pack, aiter-attn-kernels-", table.arch(object), "-",
                    table.variant_set(), "==", AITER_ATTN_VERSION,
                    ", or name the pack's file in AITER_ATTN_PACK_PATH",
                    object.recipe ? "; or, " : "");
    }
    if (object.recipe) {
      text += "to have it compiled here, install aiter-attn-compile-kit==" AITER_ATTN_VERSION;
    }
    return text;
  };
  if (object.recipe) ref.spec = [&table, &object] { return spec_of(table, object); };
  if (object.recipe && object.group) {
    // Its bytes were not built: no digest is known.
    ref.plain = [&table, &object] {
      runtime::CodeObjectSpec alone = spec_of(table, object).alone();
      runtime::CodeObjectRef plain = {alone.key(), {}, [alone] { return alone; }};
      plain.name = [&table, &object] { return name_of(table, object); };
      return plain;
    };
  }
  ref.name = [&table, &object] { return name_of(table, object); };
  return ref;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
