# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Kernels of a variant set in the emulator: the library that makes their arguments, and tests of
them."""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("//kernels:defs.bzl", "launch_table")
load("//kernels:own.bzl", "OWN_LAUNCH", "OWN_ROWS")
load("//tests/emulation:known_findings.bzl", "PATCHES_ENV")
load("//tests/emulator/gfxemu:defs.bzl", "EMULATED_ARCHS", "gfxemu_test")

def kernel_arguments(name, variant_set, repository = None, **kwargs):
    """Declares NAME.so: the instances of a set and their launch functions, without code.

    It changes when the instances do, not when their code does, so that the results of verified code
    objects outlive the compilation of others.

    Args:
      name: prefix of the targets.
      variant_set: its name.
      repository: the package of its rows.json and launch; by default that of the file of this name
        in kernels/variants.
      **kwargs: of every target: tags, visibility, ...
    """
    package = repository or "@variant_sets//" + variant_set
    launch_table(
        name = name + ".launch_table",
        testonly = True,
        rows = [package + ":rows.json"] + OWN_ROWS,
        rows_of_archs = EMULATED_ARCHS,
        variant_set = variant_set,
        deps = [package + ":launch"] + OWN_LAUNCH,
        **kwargs
    )
    cc_binary(
        name = name + ".so",
        testonly = True,
        srcs = ["//tests/emulation/harness:launches.cc"],
        # structs.py reads the debug information.
        copts = [
            "-fstandalone-debug",
            "-g",
        ],
        linkshared = True,
        deps = [
            name + ".launch_table",
            "//kernels/launch_table",
        ],
        **kwargs
    )

def kernel_test(
        name,
        arguments,
        code_objects,
        deps = [],
        env = {},
        patches_env = PATCHES_ENV,
        **kwargs):
    """A gfxemu_test of `kernels()` (kernel.py).

    Args:
      name: of the test.
      arguments: NAME.so of kernel_arguments.
      code_objects: targets of .hsaco files, of instances that `arguments` has.
      deps: py_library targets beside the harness and the verdict.
      env: of the test.
      patches_env: CK_PATCHES, the patches that the code objects were compiled with.
      **kwargs: of gfxemu_test.
    """
    gfxemu_test(
        name = name,
        data = code_objects + [arguments],
        env = {
            "EMULATION_CODE_OBJECTS": " ".join(["$(rootpaths %s)" % c for c in code_objects]),
            "EMULATION_LAUNCHES": "$(rootpath %s)" % arguments,
        } | env | patches_env,
        deps = deps + [
            "//tests/emulation/harness",
            "//tests/emulation/verify:verdict",
        ],
        **kwargs
    )
