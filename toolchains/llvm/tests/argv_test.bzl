# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""What the command lines of C++ actions say: nothing of the host's."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")

_HOST_FOLDERS = ["/usr", "/lib", "/opt", "/home", "/root", "/tmp"]

def _argv_test_impl(ctx):
    env = analysistest.begin(ctx)
    seen = {}
    for action in analysistest.target_actions(env):
        if action.mnemonic not in ["CppCompile", "CppLink", "CppArchive"]:
            continue
        seen[action.mnemonic] = True
        asserts.true(env, "llvm/bin/" in action.argv[0], action.argv[0])
        for argument in action.argv:
            value = argument.split("=")[-1].removeprefix("-I").removeprefix("-L")
            host = [folder for folder in _HOST_FOLDERS if value.startswith(folder)]
            asserts.equals(env, [], host, "a folder of the host's: " + argument)
        if action.mnemonic != "CppArchive":
            for flag in ["-no-canonical-prefixes", "--no-default-config"]:
                asserts.true(env, flag in action.argv, flag + " is missing")
            sysroots = [a for a in action.argv if a.startswith("--sysroot=external/")]
            asserts.equals(env, 1, len(sysroots))
    asserts.equals(env, sorted(ctx.attr.mnemonics), sorted(seen.keys()))
    return analysistest.end(env)

argv_test = analysistest.make(
    _argv_test_impl,
    attrs = {"mnemonics": attr.string_list(doc = "the kinds of actions there are")},
)
