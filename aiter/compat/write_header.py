# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes mha_fwd.h or mha_bwd.h of one pin of AITER."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from aiter.compat.fields import PASSES, PINS, STRUCTS, layout

_PASS = flags.DEFINE_enum("pass", None, PASSES, "The struct's pass.", required=True)
_PIN = flags.DEFINE_enum("pin", None, PINS, "AITER's commit.", required=True)
_NAMESPACE = flags.DEFINE_string("namespace", None, "--//aiter:namespace.", required=True)
_OUT = flags.DEFINE_string("out", None, "The header.", required=True)

_HEADER = """\
// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// aiter::mha_{pass_name} over aiter-attn, with the fields of AITER at {pin}. docs/consumers.md says
// what each field is here. Written by aiter/compat/write_header.py; do not edit.
//
// The struct and the function are in a namespace of this pin's and of the library's, so that code
// which was compiled with another pin's header, or with AITER's own, does not link with this one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <ck_tile/host.hpp>
#include <bias.hpp>
#include <mask.hpp>
{includes}
// The library reads the structs by these offsets.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#define AITER_COMPAT_AT(type, field, offset)                                          \\
  static_assert(offsetof(type, field) == offset, #type "." #field " lies elsewhere: " \\
                "compile for x86-64 with libstdc++, _GLIBCXX_USE_CXX11_ABI=1, and headers of " \\
                "Composable Kernel that are the pin's, if any")

namespace aiter {{
inline namespace {inner} {{

struct mha_{pass_name}_args
{{
{fields}}};

// Queues the pass on the stream. Milliseconds of one run where stream.time_kernel_ asks for them,
// else 0; below 0, and the reason on stderr, where it cannot be served.
__attribute__((visibility("default"))) float mha_{pass_name}(mha_{pass_name}_args args,
                                                     const ck_tile::stream_config& stream);
{more}
}}  // namespace {inner}
}}  // namespace aiter

{offsets}AITER_COMPAT_AT(ck_tile::stream_config, stream_id_, 0);
AITER_COMPAT_AT(ck_tile::stream_config, time_kernel_, 8);
AITER_COMPAT_AT(ck_tile::stream_config, log_level_, 12);
AITER_COMPAT_AT(ck_tile::stream_config, cold_niters_, 16);
AITER_COMPAT_AT(ck_tile::stream_config, nrepeat_, 20);
AITER_COMPAT_AT(ck_tile::stream_config, is_gpu_timer_, 24);
#undef AITER_COMPAT_AT
#pragma GCC diagnostic pop
{size}"""
_SIZE = """\
static_assert(sizeof({struct}) == {size},
              "{struct} has another size than aiter-attn's library reads");
"""

# Attention over key-value caches, declared beside the forward pass. Those who do not call it may
# have headers of Composable Kernel's whose structs are others.
_CACHE_INCLUDES = """\
// Composable Kernel's own is left to whoever calls functions over caches: it needs HIP.
#if !__has_include(<ck_tile/core.hpp>)
#include <fmha_fwd.hpp>
#endif

struct fmha_fwd_splitkv_args;
struct fmha_batch_prefill_args;
enum class quant_scale_enum;
"""
_CACHES = """
using mha_fwd_splitkv_args = ::fmha_fwd_splitkv_args;
using mha_batch_prefill_args = ::fmha_batch_prefill_args;

// The library's, which reads the structs by their offsets.
namespace by_offsets {{
__attribute__((visibility("default"))) float mha_fwd_splitkv(
    mha_fwd_splitkv_args args, const ck_tile::stream_config& stream, std::string q_dtype_str,
    bool is_group_mode, mask_enum mask_type, bias_enum bias_type, bool has_lse, bool has_sink);
__attribute__((visibility("default"))) float mha_batch_prefill(
    mha_batch_prefill_args args, const ck_tile::stream_config& stream, std::string q_dtype_str,
    bool is_group_mode, mask_enum mask_type, bias_enum bias_type, bool has_lse,
    quant_scale_enum qscale_type, bool use_ext_asm);
}}  // namespace by_offsets

// As mha_fwd, over keys in place or in pages, in num_splits parts.
template <typename Args = mha_fwd_splitkv_args>
float mha_fwd_splitkv(Args args, const ck_tile::stream_config& stream, std::string q_dtype_str,
                      bool is_group_mode, mask_enum mask_type, bias_enum bias_type, bool has_lse,
                      bool has_sink = false)
{{
{splitkv}\
    return by_offsets::mha_fwd_splitkv(args, stream, q_dtype_str, is_group_mode, mask_type,
                                       bias_type, has_lse, has_sink);
}}

// As mha_fwd, over the pages of a block table or of a page list.
template <typename Args = mha_batch_prefill_args>
float mha_batch_prefill(Args args, const ck_tile::stream_config& stream, std::string q_dtype_str,
                        bool is_group_mode, mask_enum mask_type, bias_enum bias_type, bool has_lse,
                        quant_scale_enum qscale_type, bool use_ext_asm)
{{
{batch_prefill}\
    return by_offsets::mha_batch_prefill(args, stream, q_dtype_str, is_group_mode, mask_type,
                                         bias_type, has_lse, qscale_type, use_ext_asm);
}}
"""

# Of pins whose forward pass may be told how many parts to split the keys in.
_SPLITS = """
// 1: the result does not depend on num_splits.
__attribute__((visibility("default"))) int mha_fwd_calculate_num_splits(const mha_fwd_args& args);

// 0: splitkv_workspace_ptr is not read.
__attribute__((visibility("default"))) size_t mha_fwd_workspace_size(const mha_fwd_args& args);
"""


def _layout_asserts(struct: str, table: str, pin: str) -> tuple[str, str]:
    """Of the fields' offsets, and of the size."""
    fields, size = layout(table, pin)
    offsets = [f"AITER_COMPAT_AT({struct}, {f.name}, {f.offset});\n" for f in fields]
    return "".join(offsets), _SIZE.format(struct=struct, size=size)


def header(pass_name: str, pin: str, namespace: str) -> str:
    """The text of mha_{pass_name}.h."""
    fields, _ = layout(pass_name, pin)
    # TransformerEngine's set-up sees a field with = and not one with {}: as in AITER's header.
    lines = [
        f"    {f.type} {f.name}{'' if f.default in ('', '{}') else ' '}{f.default};\n"
        for f in fields
    ]
    offsets, size = _layout_asserts(f"aiter::{STRUCTS[pass_name]}", pass_name, pin)
    includes = more = ""
    if pass_name == PASSES[0]:
        caches = {
            table: "".join(_layout_asserts("Args", table, pin))
            for table in ("splitkv", "batch_prefill")
        }
        includes, more = _CACHE_INCLUDES, _CACHES.format(**caches)
    if any(f.name == "num_splits" for f in fields):
        more = _SPLITS + more
    return _HEADER.format(
        pass_name=pass_name,
        pin=pin,
        inner=f"{namespace}_{pin}",
        fields="".join(lines),
        offsets=offsets,
        includes=includes,
        more=more,
        size=size,
    )


def main(argv: Sequence[str]) -> None:
    del argv
    text = header(_PASS.value, _PIN.value, _NAMESPACE.value)
    Path(_OUT.value).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    app.run(main)
