# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The rule behind fuzz_target."""

# The sanitizers that find most, without slowing a run down much.
_FEATURES = [
    "asan",
    "fuzzer",
    "ubsan",
]

def _fuzzed_impl(_settings, _attr):
    # In place of any other features: thread and address sanitizer cannot be had together.
    return {"//command_line_option:features": _FEATURES}

_fuzzed = transition(
    implementation = _fuzzed_impl,
    inputs = [],
    outputs = ["//command_line_option:features"],
)

# Starts in the runfiles of the main repository. A finding goes where `bazel run` was called, or to
# the test's outputs.
_SCRIPT = """#!/bin/sh
if [ -n "${{BUILD_WORKING_DIRECTORY:-}}" ]; then
    set -- -artifact_prefix="$BUILD_WORKING_DIRECTORY/" "$@"
else
    set -- -artifact_prefix="${{TEST_UNDECLARED_OUTPUTS_DIR:-.}}/" -runs={runs} -seed=1 "$@"
fi
exec ./{runner} ./{program} -max_len={max_len} "$@"
"""

def _fuzz_test_impl(ctx):
    script = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        script,
        _SCRIPT.format(
            max_len = ctx.attr.max_len,
            program = ctx.executable.program.short_path,
            runner = ctx.executable._runner.short_path,
            runs = ctx.attr.runs,
        ),
        is_executable = True,
    )
    runfiles = ctx.runfiles([ctx.executable.program, ctx.executable._runner])
    return [DefaultInfo(
        executable = script,
        runfiles = runfiles.merge(ctx.attr._runner[0][DefaultInfo].default_runfiles),
    )]

fuzz_test = rule(
    implementation = _fuzz_test_impl,
    doc = "Runs a program of libFuzzer's, built with the features that all its dependencies need.",
    attrs = {
        "max_len": attr.int(mandatory = True),
        "program": attr.label(cfg = _fuzzed, executable = True, mandatory = True),
        "runs": attr.int(mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
        "_runner": attr.label(
            cfg = _fuzzed,
            default = "//toolchains/llvm/sanitizers:run",
            executable = True,
        ),
    },
    test = True,
)
