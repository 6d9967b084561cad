# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""attention_pass: the room of a pass."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//aiter:copts.bzl", "COPTS")

def attention_pass(name, deps = []):
    """A library of all of a folder but its tests, with the dependencies of every pass.

    Args:
      name: of the folder, whose header for others is NAME.h.
      deps: those of this pass alone.
    """
    header = name + ".h"
    cc_library(
        name = name,
        srcs = native.glob(
            [
                "*.cc",
                "*.h",
            ],
            exclude = [
                "*_test.cc",
                header,
            ],
        ),
        hdrs = [header],
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
