# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""compilers: the C and the C++ compiler of this build as programs for other build systems."""

load("@rules_cc//cc:action_names.bzl", "ACTION_NAMES")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")

# A build system that links lets the compiler do it. Paths are those of a test's runfiles.
_SCRIPT = """#!/bin/sh
for argument; do
  case $argument in
    -c|-E) exec {compiler} {compile} "$@" ;;
  esac
done
exec {compiler} "$@" {link}
"""

def _quoted(flags):
    """Flags for sh, with paths below $RUNFILES in the place of those below the execution root."""
    words = []
    for flag in flags:
        words.append("\"%s\"" % flag.replace("\"", "\\\"").replace("external/", "$RUNFILES/"))
    return " ".join(words)

def _compilers_impl(ctx):
    cc_toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )

    def flags(action, variables):
        return _quoted(cc_common.get_memory_inefficient_command_line(
            action_name = action,
            feature_configuration = features,
            variables = variables,
        ))

    link = flags(
        ACTION_NAMES.cpp_link_executable,
        cc_common.create_link_variables(
            cc_toolchain = cc_toolchain,
            feature_configuration = features,
        ),
    )
    outputs = []
    for name, action in {
        "c++": ACTION_NAMES.cpp_compile,
        "cc": ACTION_NAMES.c_compile,
    }.items():
        out = ctx.actions.declare_file("%s/%s" % (ctx.label.name, name))
        compiler = cc_common.get_tool_for_action(
            action_name = action,
            feature_configuration = features,
        )
        variables = cc_common.create_compile_variables(
            cc_toolchain = cc_toolchain,
            feature_configuration = features,
        )
        ctx.actions.write(out, _SCRIPT.format(
            compile = flags(action, variables),
            compiler = _quoted([compiler]),
            link = link,
        ), is_executable = True)
        outputs.append(out)
    return [DefaultInfo(
        files = depset(outputs),
        runfiles = ctx.runfiles(files = outputs, transitive_files = cc_toolchain.all_files),
    )]

compilers = rule(
    implementation = _compilers_impl,
    doc = "NAME/cc and NAME/c++, which find their files below $RUNFILES.",
    fragments = ["cpp"],
    toolchains = use_cc_toolchain(),
)
