# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Building for every ABI at once, or for one under any flag, with parts that do not depend on the
ABI built once.

A transition gives all that it reaches other paths, and so other keys in every cache. The ABI that
is asked for is remembered; abi_independent goes back to it, and so to the very actions of a plain
build.
"""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//toolchains/versions:abis.bzl", "ABIS")

_ABI = "//toolchains/python:abi"
_ASKED = "//toolchains/python:asked_abi"

def _for_abi(abi, settings):
    asked = settings[_ASKED] or settings[_ABI]
    return {
        _ABI: abi,
        _ASKED: "" if abi == asked else asked,
    }

def _each_abi_impl(settings, _attr):
    return {abi: _for_abi(abi, settings) for abi in ABIS}

each_abi = transition(
    implementation = _each_abi_impl,
    inputs = [_ABI, _ASKED],
    outputs = [_ABI, _ASKED],
)

def _for_each_abi_impl(ctx):
    return [DefaultInfo(
        files = depset(transitive = [t[DefaultInfo].files for t in ctx.split_attr.target.values()]),
    )]

for_each_abi = rule(
    implementation = _for_each_abi_impl,
    doc = "The files of `target` as built for every ABI, in one build, under any flag.",
    attrs = {
        "target": attr.label(mandatory = True, cfg = each_abi),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)

def _as_asked_impl(settings, _attr):
    return {
        _ABI: settings[_ASKED] or settings[_ABI],
        _ASKED: "",
    }

_as_asked = transition(
    implementation = _as_asked_impl,
    inputs = [_ABI, _ASKED],
    outputs = [_ABI, _ASKED],
)

def _abi_independent_impl(ctx):
    target = ctx.attr.target[0]
    return [
        DefaultInfo(
            files = target[DefaultInfo].files,
            runfiles = target[DefaultInfo].default_runfiles,
        ),
        target[CcInfo] if CcInfo in target else CcInfo(),
    ]

abi_independent = rule(
    implementation = _abi_independent_impl,
    doc = "`target`, a library or files, which are the same for every Python ABI.",
    attrs = {
        "target": attr.label(mandatory = True, cfg = _as_asked),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    # Also of mere files: a cc_shared_library looks behind no rule that does not promise it.
    provides = [CcInfo],
)

def _one_abi_impl(settings, attr):
    return _for_abi(attr.abi, settings)

_one_abi = transition(
    implementation = _one_abi_impl,
    inputs = [_ABI, _ASKED],
    outputs = [_ABI, _ASKED],
)

def _started(ctx, target):
    """The file in a target's runfiles that starts its program."""
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    program = target[DefaultInfo].files_to_run.executable.short_path
    ctx.actions.write(script, "#!/bin/sh\nexec ./%s \"$@\"\n" % program, is_executable = True)
    runfiles = ctx.runfiles(transitive_files = target[DefaultInfo].files)
    return [
        DefaultInfo(
            executable = script,
            runfiles = runfiles.merge(target[DefaultInfo].default_runfiles),
        ),
        target[RunEnvironmentInfo],
    ]

def _abi_test_impl(ctx):
    return _started(ctx, ctx.attr.test[0])

abi_test = rule(
    implementation = _abi_test_impl,
    doc = "`test` as built for `abi`, whatever is asked for, with its environment and the " +
          "arguments of this one.",
    attrs = {
        "abi": attr.string(mandatory = True, values = ABIS.keys()),
        "test": attr.label(mandatory = True, cfg = _one_abi),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    test = True,
)

def _abi_binary_impl(ctx):
    return _started(ctx, ctx.attr.program[0])

abi_binary = rule(
    implementation = _abi_binary_impl,
    doc = "`program` as built for `abi`, under any flag, for `bazel run`.",
    attrs = {
        "abi": attr.string(mandatory = True, values = ABIS.keys()),
        "program": attr.label(mandatory = True, cfg = _one_abi),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    executable = True,
)
