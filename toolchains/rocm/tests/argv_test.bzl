# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Command lines of HIP compiles."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")

def _argv_test_impl(ctx):
    env = analysistest.begin(ctx)
    action = [
        action
        for action in analysistest.target_actions(env)
        if action.mnemonic == "HipObject"
    ][0]
    argv = action.argv
    for flag in ctx.attr.present:
        asserts.true(env, flag in argv, "%s is missing in %s" % (flag, argv))
    for prefix in ctx.attr.absent:
        found = [argument for argument in argv if argument.startswith(prefix)]
        asserts.equals(env, [], found)

    # Nothing of the host's: programs and paths are relative to the execution root.
    asserts.true(env, argv[0].startswith("external/"), argv[0])
    for argument in argv:
        value = argument.split("=")[-1].removeprefix("-I").removeprefix("-L")
        asserts.false(env, value.startswith("/"), "an absolute path: " + argument)
    inputs = action.inputs.to_list()
    asserts.true(env, len(inputs) < ctx.attr.most_inputs, "%d inputs" % len(inputs))
    return analysistest.end(env)

argv_test = analysistest.make(
    _argv_test_impl,
    attrs = {
        "absent": attr.string_list(doc = "beginnings of arguments that are not there"),
        "most_inputs": attr.int(default = 1600),
        "present": attr.string_list(doc = "arguments that are there"),
    },
)
