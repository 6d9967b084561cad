# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""attention_pass: the room of a pass."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//aiter:copts.bzl", "COPTS")

def attention_pass(name, srcs = None, deps = []):
    """A library NAME with NAME.h, with the dependencies of every pass.

    Args:
      name: of the folder, too.
      srcs: files beside NAME.h and NAME.cc.
      deps: those of this pass alone.
    """
    cc_library(
        name = name,
        srcs = [name + ".cc"] + (srcs or []),
        hdrs = [name + ".h"],
        # The computation on the CPU takes its time.
        copts = COPTS + ["-O2"],
        visibility = ["//aiter/attention/passes:__pkg__"],
        deps = [
            "//aiter:attn_h",
            "//aiter/attention:dispatch",
            "//aiter/attention:launch",
            "//aiter/attention/problem",
            "//aiter/attention/reference",
            "//aiter/runtime:parallel",
            "//kernels/launch_table",
        ] + deps,
    )
