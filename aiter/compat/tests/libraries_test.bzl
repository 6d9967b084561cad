# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Arguments of mha_libraries that are refused."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//aiter/compat:defs.bzl", "libraries_problem")
load("//aiter/compat:pins.bzl", "PINS")

def _libraries_test_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, "", libraries_problem("x", PINS[0], "te"))
    asserts.equals(
        env,
        "mha_libraries(name = \"x\"): pin is \"1234567\", but must be one of " + ", ".join(PINS),
        libraries_problem("x", "1234567", "te"),
    )
    for namespace in ["", "9te", "te-v3"]:
        asserts.equals(
            env,
            ("mha_libraries(name = \"x\"): namespace is \"%s\", which is not a C identifier; use " +
             "letters, digits and underscores, e.g. te") % namespace,
            libraries_problem("x", PINS[0], namespace),
        )
    return unittest.end(env)

libraries_test = unittest.make(_libraries_test_impl)
