# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository rule behind @python_3_NN."""

load("//toolchains/debian:debian.bzl", "debian_tree")

# Of the standard library: tests, and what needs Tk, a terminal's manual or a C compiler.
_UNUSED = [
    "__phello__",
    "config-*",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "test",
    "tkinter",
    "turtledemo",
]

def _python_tree_impl(rctx):
    version = rctx.attr.version
    library = "usr/lib/python" + version
    debian_tree(
        rctx,
        rctx.attr.group,
        keep = [
            "*/ld-linux-x86-64.so.2",
            "lib/x86_64-linux-gnu/lib*.so*",
            "usr/bin/python" + version,
            "usr/include/python%s/*" % version,
            "usr/include/x86_64-linux-gnu/python%s/*" % version,
            "usr/lib/x86_64-linux-gnu/lib*.so*",
            library + "/*",
        ],
        exclude = [
            "*/gconv/*",
            # The host's: Debian links it to /etc.
            library + "/sitecustomize.py",
        ] + ["%s/%s/*" % (library, folder) for folder in _UNUSED],
    )
    loaders = [
        folder + "/ld-linux-x86-64.so.2"
        for folder in ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"]
        if rctx.path(folder + "/ld-linux-x86-64.so.2").exists
    ]
    if len(loaders) != 1:
        fail("group %r: found %d dynamic loaders, need one: does it hold one libc6?" %
             (rctx.attr.group, len(loaders)))
    for wrapper in ["bin/python3", "usr/bin/python3"]:
        rctx.template(
            wrapper,
            rctx.attr.wrapper,
            {
                "@LOADER@": loaders[0],
                "@VERSION@": version,
            },
            executable = True,
        )

    # Bytecode is made once, here, of names inside the tree and checked against no clock: every
    # machine makes the same. Without it each start of Python compiles what it imports.
    got = rctx.execute(
        [
            "bin/python3",
            "-m",
            "compileall",
            "-q",
            "-j0",
            "--invalidation-mode",
            "unchecked-hash",
            library,
        ],
        # The user's own Python may be told of its home; to this one that is no home.
        environment = {
            "PYTHONHASHSEED": "0",
            "PYTHONHOME": "",
            "PYTHONPATH": "",
        },
    )
    if got.return_code:
        fail("cannot compile the standard library of Python %s: %s%s" %
             (version, got.stdout, got.stderr))
    rctx.template(
        "BUILD.bazel",
        rctx.attr.build_file,
        {"@VERSION@": version},
        executable = False,
    )

python_tree = repository_rule(
    implementation = _python_tree_impl,
    doc = """A Python interpreter from locked packages that runs on any x86-64 Linux host.

bin/python3 is its program, for actions and for repository rules.""",
    attrs = {
        "build_file": attr.label(
            default = "//toolchains/python:python.BUILD.bazel",
            allow_single_file = True,
        ),
        "group": attr.string(mandatory = True, doc = "group of the lock"),
        "version": attr.string(mandatory = True, doc = "like 3.13"),
        "wrapper": attr.label(
            default = "//toolchains/python:python.sh.tpl",
            allow_single_file = True,
        ),
    },
)
