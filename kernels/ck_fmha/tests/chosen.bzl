# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A kernel with options of its own, of the lock, and the command line of its compile."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("@kernel_lists//:options.bzl", "OPTIONS_LOCK")

def _smallest_first(found):
    """The order in which one is taken: delta is compiled the quickest."""
    member, arch = found
    return ("_dot_do_o_" not in member, member, arch)

def chosen_kernel():
    """A kernel whose options are not the compiler's own.

    Returns:
      A struct(arch, entry, label, member): of its code object, compiled by itself.
    """
    found = sorted([
        (member, arch)
        for arch, members in OPTIONS_LOCK.items()
        for member, entry in members.items()
        if entry["options"]
    ], key = _smallest_first)
    if not found:
        fail("options/lock.json has no kernel with options: the test would be of none")
    member, arch = found[0]
    return struct(
        arch = arch,
        entry = OPTIONS_LOCK[arch][member],
        label = "@ck_fmha//%s.%s" % (member, arch),
        member = member,
    )

def _argv(env):
    actions = {action.mnemonic: action for action in analysistest.target_actions(env)}
    return actions["HipCodeObject"].argv

def _chosen_options_test_impl(ctx):
    env = analysistest.begin(ctx)
    argv = _argv(env)
    given = [
        argv[place + 1]
        for place in range(len(argv) - 1)
        if argv[place] == "-mllvm"
    ]

    # Those of the recipe come before.
    asserts.equals(env, ctx.attr.options, given[-len(ctx.attr.options):])
    return analysistest.end(env)

chosen_options_test = analysistest.make(
    _chosen_options_test_impl,
    attrs = {"options": attr.string_list(mandatory = True)},
)

def _no_chosen_options_test_impl(ctx):
    env = analysistest.begin(ctx)
    for option in ctx.attr.options:
        asserts.false(env, option in _argv(env), option + " is there")
    return analysistest.end(env)

no_chosen_options_test = analysistest.make(
    _no_chosen_options_test_impl,
    attrs = {"options": attr.string_list(mandatory = True)},
    config_settings = {str(Label("//kernels/ck_fmha:machine_options")): "upstream"},
)
