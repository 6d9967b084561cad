# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Command lines of C++ actions: nothing of the host is in them."""

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
        runtime = [file.path for file in action.inputs.to_list() if "compiler_rt" in file.path]
        asserts.equals(env, [], runtime, "a sanitizer's runtime, which would have to be fetched")
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

def _sanitized_argv_test_impl(ctx):
    env = analysistest.begin(ctx)
    actions = {action.mnemonic: action for action in analysistest.target_actions(env)}
    for mnemonic in ["CppCompile", "CppLink"]:
        asserts.true(env, "-fsanitize=address" in actions[mnemonic].argv, mnemonic)
    resources = [a for a in actions["CppLink"].argv if a.startswith("-resource-dir=")]
    asserts.true(env, "compiler_rt" in resources[-1], resources[-1])
    runtime = [f for f in actions["CppLink"].inputs.to_list() if "libclang_rt.asan" in f.basename]
    asserts.true(env, runtime != [], "the link lacks the runtime")
    return analysistest.end(env)

sanitized_argv_test = analysistest.make(
    _sanitized_argv_test_impl,
    config_settings = {"//command_line_option:features": ["asan"]},
)
