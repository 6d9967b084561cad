# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The command lines of a code object's actions."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")

_PRESENT = [
    "--offload-arch=gfx950",
    "--cuda-device-only",
    "--no-gpu-bundle-output",
    "-O3",
    "-DCK_TILE_FMHA_FWD_FAST_EXP2=1",
    "-DCK_TILE_FLOAT_TO_BFLOAT16_DEFAULT=3",
    "-fgpu-flush-denormals-to-zero",
]

# Upstream LLVM takes ten times as long with both of these (and gives the same code).
_ABSENT = [
    "-amdgpu-early-inline-all=true",
    "-amdgpu-function-calls=false",
]

def _argv_test_impl(ctx):
    env = analysistest.begin(ctx)
    actions = {action.mnemonic: action for action in analysistest.target_actions(env)}
    compile = actions["HipCodeObject"]
    for flag in _PRESENT:
        asserts.true(env, flag in compile.argv, flag + " is missing")
    for flag in _ABSENT:
        asserts.false(env, flag in compile.argv, flag + " is there")
    for argument in compile.argv:
        asserts.false(env, argument.startswith("/"), "an absolute path: " + argument)

    # Without shortcuts, as it is configured here.
    shortcut = "-enable-global-analyses=0"
    asserts.false(env, shortcut in compile.argv, shortcut + " is there")

    # No Python file is an input: touching one recompiles nothing.
    python = [file.path for file in compile.inputs.to_list() if file.extension == "py"]
    asserts.equals(env, [], python)

    # Nor is a variant set's own repository: sets share the compile.
    asserts.false(env, "variant_set" in " ".join([file.path for file in compile.inputs.to_list()]))

    # Two actions per object, with a proof or without.
    asserts.equals(env, ["CodeObjectDescribe", "HipCodeObject"], sorted(actions))
    return analysistest.end(env)

argv_test = analysistest.make(
    _argv_test_impl,
    config_settings = {
        str(Label("//kernels/ck_fmha:machine_options")): "upstream",
        str(Label("//kernels/ck_fmha:shortcuts")): "none",
    },
)

def _library_test_impl(ctx):
    env = analysistest.begin(ctx)
    actions = [action.mnemonic for action in analysistest.target_actions(env)]

    # Four per object in all, with any features of the toolchain that would add to its archive.
    asserts.equals(env, ["CppArchive", "CppCompile"], sorted(actions))
    return analysistest.end(env)

library_test = analysistest.make(_library_test_impl)

def _sanitized_test_impl(ctx):
    env = analysistest.begin(ctx)
    for action in analysistest.target_actions(env):
        sanitized = [argument for argument in action.argv if "sanitize" in argument]
        asserts.equals(env, [], sanitized, "a code object would be compiled anew")
        runtime = [file.path for file in action.inputs.to_list() if "compiler_rt" in file.path]
        asserts.equals(env, [], runtime)
    return analysistest.end(env)

# Code objects are data: a sanitizer of host code does not see them.
sanitized_test = analysistest.make(
    _sanitized_test_impl,
    config_settings = {"//command_line_option:features": ["asan", "ubsan"]},
)

def _recipe_test_impl(ctx):
    env = analysistest.begin(ctx)
    argv = analysistest.target_actions(env)[0].argv
    flags = argv[argv.index("--") + 1:]

    # The arch is a field of its own.
    for flag in [flag for flag in _PRESENT if not flag.startswith("--offload-arch")]:
        asserts.true(env, flag in flags, flag + " is missing")
    for flag in flags:
        asserts.false(env, "~" in flag, "a canonical repository name in the key: " + flag)
        asserts.false(env, "--offload-arch" in flag, flag)
    return analysistest.end(env)

recipe_test = analysistest.make(_recipe_test_impl)
