# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository rule behind @python: every ABI's tree by one name.

MODULE.bazel names this one alone: a further ABI is no change there.
"""

_BUILD = """package(default_visibility = ["//visibility:public"])
"""
_ALIAS = """
alias(
    name = "{abi}_{target}",
    actual = "@{tree}//:{actual}",
)
"""
_TREES = """TREES = {{{trees}
}}

TOOLS_INTERPRETER = Label("@{tools}//:bin/python3")
"""
_TARGETS = {
    "files": "files",
    "headers": "headers",
    "interpreter": "bin/python3",
    "lock": "debian_lock.json",
    "tree": "tree",
}

def _python_hub_impl(rctx):
    rctx.file("BUILD.bazel", _BUILD + "".join([
        _ALIAS.format(abi = abi, actual = actual, target = target, tree = tree)
        for abi, tree in (rctx.attr.trees | {"tools": rctx.attr.trees[rctx.attr.tools_abi]}).items()
        for target, actual in _TARGETS.items()
    ]), executable = False)
    rctx.file("trees.bzl", _TREES.format(
        tools = rctx.attr.trees[rctx.attr.tools_abi],
        trees = "".join([
            "\n    \"{0}\": Label(\"@{0}//:BUILD.bazel\"),".format(tree)
            for tree in rctx.attr.trees.values()
        ]),
    ), executable = False)

python_hub = repository_rule(
    implementation = _python_hub_impl,
    doc = """Aliases ABI_NAME of files, headers, interpreter, lock, tree, also of the ABI "tools".

trees.bzl has TREES: the trees' repositories by name, as labels; and TOOLS_INTERPRETER, the program
of TOOLS_ABI, for repository rules.""",
    attrs = {
        "tools_abi": attr.string(mandatory = True, doc = "the ABI that programs of actions run on"),
        "trees": attr.string_dict(mandatory = True, doc = "ABI -> repository"),
    },
)
