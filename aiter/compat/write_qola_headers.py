# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes QoLA's headers over the functions of one pin of AITER."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from aiter.compat.fields import PINS, layout

_PIN = flags.DEFINE_enum("pin", None, PINS, "AITER's commit.", required=True)
_NAMESPACE = flags.DEFINE_string("namespace", None, "--//aiter:namespace.", required=True)
_OUT = flags.DEFINE_string("out", None, "The folder.", required=True)

_TOP = """\
// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// {what} Written by aiter/compat/write_qola_headers.py; do not edit.
#pragma once

"""
_API = '__attribute__((visibility("default")))'

_CONFIG = """\
#ifdef QOLA_NAMESPACE
#error "QOLA_NAMESPACE is set by this header: include the headers of one namespace alone"
#endif
#define QOLA_NAMESPACE {namespace}
"""
_COMMON = """\
#include "qola_config.h"

#define QOLA_NS_BEGIN \\
  namespace qola {     \\
  namespace QOLA_NAMESPACE {
#define QOLA_NS_END \\
  }                 \\
  }
#define QOLA_NS(sym) ::qola::QOLA_NAMESPACE::sym
"""
_FUNCTIONS = """\
#include "qola_common.h"

#include <mha_{this}.h>
{includes}
QOLA_NS_BEGIN

// As aiter::mha_{this}.
{api} float mha_{this}(const ::aiter::mha_{this}_args& args,
                                                     const ck_tile::stream_config& stream);

// As QoLA's first version has it.
inline float mha_{this}(const ::aiter::mha_{this}_args& args, hipStream_t stream) {{
  return QOLA_NS(mha_{this})(args, ck_tile::stream_config{{stream, false, 0}});
}}
{more}
QOLA_NS_END
"""
_SPLITS = """
// 1: the result does not depend on num_splits.
{api} int mha_fwd_calculate_num_splits(const ::aiter::mha_fwd_args& args);

// 0: splitkv_workspace_ptr is not read.
{api} size_t mha_fwd_workspace_size(const ::aiter::mha_fwd_args& args);
"""
_SINK = """
// Whether mha_fwd serves the call with a sink, which sink_ptr need not name yet.
{api} bool mha_fwd_with_sink_supported(const ::aiter::mha_fwd_args& args);
"""
_WORKSPACE = """
// The most bytes that mha_bwd asks workspace_alloc for, with a problem of these traits on the
// current device. 0 and the reason on stderr where it cannot be served; 0 alone where it asks for
// none.
{api} size_t mha_bwd_workspace_size(const fmha_bwd_traits& traits);
"""
_LAYOUT = """
// The library reads the struct by these offsets.
static_assert(offsetof(fmha_bwd_traits, nhead_k) == 32 &&
                  offsetof(fmha_bwd_traits, data_type) == 40 &&
                  offsetof(fmha_bwd_traits, is_group_mode) == 72 &&
                  offsetof(fmha_bwd_traits, bias_type) == 80 &&
                  offsetof(fmha_bwd_traits, is_deterministic) == 87 &&
                  sizeof(fmha_bwd_traits) == 88,
              "fmha_bwd_traits has other fields than those of Composable Kernel at 40ee1ee0: put "
              "aiter/compat/include before its folder among the include directories");
"""


def texts(pin: str, namespace: str) -> dict[str, str]:
    """The headers, by name."""
    fields = {this: {f.name for f in layout(this, pin)[0]} for this in ("fwd", "bwd")}
    forward = (_SPLITS if "num_splits" in fields["fwd"] else "") + _SINK
    asks = "workspace_alloc" in fields["bwd"]
    backward = _FUNCTIONS.format(
        this="bwd",
        api=_API,
        includes="#include <fmha_bwd.hpp>\n" if asks else "",
        more=(_WORKSPACE if asks else "").format(api=_API),
    )
    whats = {
        "qola_config.h": ("The namespace of the library.", _CONFIG.format(namespace=namespace)),
        "qola_common.h": ("The namespace as macros.", _COMMON),
        "qola_mha_fwd.h": (
            f"QoLA's forward pass, with the struct of AITER at {pin}.",
            _FUNCTIONS.format(this="fwd", api=_API, includes="", more=forward.format(api=_API)),
        ),
        "qola_mha_bwd.h": (
            f"QoLA's backward pass, with the struct of AITER at {pin}.",
            backward + (_LAYOUT if asks else ""),
        ),
    }
    return {name: _TOP.format(what=what) + text for name, (what, text) in whats.items()}


def main(argv: Sequence[str]) -> None:
    del argv
    for name, text in texts(_PIN.value, _NAMESPACE.value).items():
        Path(_OUT.value, name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    app.run(main)
