# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""embedded_pack: code objects as read-only data of a C++ library."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//kernels/private:embed.bzl", "EMBED_ATTRS", "embedding_library")
load("//kernels/private:pack.bzl", "PACK_ATTRS", "write_pack")
load("//kernels/private:providers.bzl", "CodeObjectsInfo")

_SOURCE = """// Generated. Do not edit.
#include "kernels/code_object/embedded_pack.h"
#include "kernels/private/embed.h"

ATTN_EMBED(attn_{function}, "{path}");

namespace AITER_ATTN_NAMESPACE::kernels {{

EmbeddedPack {function}();

EmbeddedPack {function}() {{
  return {{attn_{function}, static_cast<uint64_t>(attn_{function}_end - attn_{function})}};
}}

}}  // namespace AITER_ATTN_NAMESPACE::kernels
"""

def _embedded_pack_impl(ctx):
    infos = ctx.attr.code_objects[CodeObjectsInfo].code_objects.to_list()
    if ctx.attr.leave_out:
        infos = [info for info in infos if not info.instance.startswith(ctx.attr.leave_out)]
    pack = write_pack(ctx, infos)
    source = ctx.actions.declare_file(ctx.label.name + ".cc")
    ctx.actions.write(source, _SOURCE.format(
        function = ctx.attr.function,
        path = pack.path,
    ))
    return [
        DefaultInfo(files = depset([pack])),
        embedding_library(ctx, source = source, data = [pack], deps = [ctx.attr._header[CcInfo]]),
    ]

embedded_pack = rule(
    implementation = _embedded_pack_impl,
    doc = """A C++ library that defines a function which returns code objects as an EmbeddedPack.

Its file is the pack.""",
    attrs = {
        "code_objects": attr.label(mandatory = True, providers = [CodeObjectsInfo]),
        "function": attr.string(mandatory = True, doc = "its name in namespace kernels"),
        "leave_out": attr.string(
            doc = "instances whose names begin so are not in the pack; empty: all are",
        ),
        "_header": attr.label(
            default = "//kernels/code_object:embedded_pack_h",
            providers = [CcInfo],
        ),
    } | EMBED_ATTRS | PACK_ATTRS,
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = use_cc_toolchain(),
)
