# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""consumer_test: a program that calls AITER's interface, on the emulated HIP runtime."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//aiter/compat:defs.bzl", "mha_libraries")
load("//aiter/compat:pins.bzl", "PINS")
load("//tests/emulation:known_findings.bzl", "PATCHES_ENV")
load("//tests/emulator/gfxemu:defs.bzl", "EMULATED_ARCHS", "gfxemu_test")

# Programs -> the consumer, and the libraries that it is linked with.
PROGRAMS = {
    "shared_" + pin: [
        ":bwd_" + pin,
        ":fwd_" + pin,
        ":calls",
        "//aiter/compat/tests:consumer_" + pin,
    ]
    for pin in PINS
} | {
    "ck_fused_attn": [
        ":of_ck_fused_attn",
        ":of_qola.libraries",
    ],
    "ck_fused_attn_static": [
        ":of_caches",
        ":of_ck_fused_attn",
        "//aiter/compat:mha_7a24cd8",
        "//aiter:attn",
    ],
    "qola_7a24cd8": [":of_qola"],
    "archive_d32b0cb": [
        ":archive",
        ":calls",
        "//aiter/compat/tests:consumer_d32b0cb",
    ],
    "static_e95f7d4": [
        ":calls",
        "//aiter/compat:mha_e95f7d4",
        "//aiter/compat/tests:consumer_e95f7d4",
        "//aiter:attn",
    ],
}

def qola_consumer(name, namespace, pin, prefix, has_splits = False):
    """A consumer of QoLA's headers and libraries: NAME, and NAME.libraries.

    Args:
      name: of the cc_library.
      namespace: of the libraries.
      pin: of them.
      prefix: of its functions' names, `consumer` in the place of which it is compiled.
      has_splits: whether the pin's forward struct has num_splits.
    """
    mha_libraries(
        name = name + ".libraries",
        testonly = True,
        namespace = namespace,
        pin = pin,
    )
    cc_library(
        name = name,
        testonly = True,
        srcs = [
            "calls.cc",
            "questions.cc",
            "//aiter/compat/tests:consumer.cc",
        ],
        copts = [
            "-fstandalone-debug",
            "-g",
        ],
        local_defines = [
            "CONSUMER_OF_QOLA",
            "consumer=" + prefix,
        ] + (["HAS_SPLITS"] if has_splits else []),
        deps = [
            ":%s.libraries" % name,
            "//aiter/compat/tests:consumer_h",
        ],
        alwayslink = True,
    )

_HIP = "//tests/emulator/hip:libamdhip64.so.6"

def consumer_test(name, srcs, consumer, data = [], deps = [], env = {}, **kwargs):
    """A gfxemu_test that loads a consumer, on a device of each arch that kernels are built for.

    Args:
      name: of the test.
      srcs: files with tests, beside conftest.py.
      consumer: a shared object of calls.cc.
      data: files beside it.
      deps: py_library targets beside those of conftest.py.
      env: of the test; $(rootpath) is expanded for data.
      **kwargs: of gfxemu_test.
    """
    archs = {}
    for arch in EMULATED_ARCHS:
        archs = archs | select({
            "//kernels:%s.selected" % arch: {"BUILT_FOR_" + arch: "1"},
            "//conditions:default": {},
        })
    gfxemu_test(
        name = name,
        size = "medium",
        srcs = ["conftest.py"] + srcs,
        data = data + [
            _HIP,
            consumer,
        ],
        env = {
            "CONSUMER": "$(rootpath %s)" % consumer,
            "EMULATED_HIP": "$(rootpath %s)" % _HIP,
        } | env | archs | PATCHES_ENV,
        # A sanitizer's runtime would have to be in Python.
        target_compatible_with = select({
            "//toolchains/llvm/sanitizers:any.enabled": ["@platforms//:incompatible"],
            "//conditions:default": [],
        }),
        deps = deps + [
            "//tests/consumers:attention",
            "//tests/consumers:device",
            "//tests/consumers:hostile_process",
        ],
        **kwargs
    )
