# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""check_proofs: what is proven of kernels in groups, held against their compiles before these run.

code_object's describe action goes by the same comparison, for each object, once it is there."""

load("//toolchains/python:defs.bzl", "run_py_tool")

def check_proofs(ctx, infos):
    """Says in one line how many kernels are compiled as unproven although a lock has their proofs.

    Args:
      ctx: the rule's; it needs PROOFS_ATTRS.
      infos: CodeObjectInfo of the kernels.

    Returns:
      A list of File for the output group `_validation`: a build makes these without being asked.
      It is empty where nothing is proven.
    """
    proven = [info for info in infos if info.proof]
    if not proven:
        return []
    kernels = ctx.actions.declare_file(ctx.label.name + ".proven.json")
    ctx.actions.write(kernels, json.encode([
        {
            "arch": info.arch,
            "flags": info.proof.flags,
            "instance": info.instance,
            "key": info.proof.key,
            "recipe": info.recipe.path,
            "source": info.proof.source.path,
        }
        for info in proven
    ]))
    found = ctx.actions.declare_file(ctx.label.name + ".unproven.json")
    arguments = ctx.actions.args()
    arguments.add("--kernels", kernels)
    arguments.add("--out", found)
    run_py_tool(
        ctx,
        tool = ctx.attr._check_proofs,
        arguments = [arguments],
        inputs = [kernels] + {info.recipe: None for info in proven}.keys() +
                 [info.proof.source for info in proven],
        outputs = [found],
        mnemonic = "CheckProofs",
        progress_message = "Checking the proofs of %{label}",
    )
    return [found]

PROOFS_ATTRS = {
    "_check_proofs": attr.label(cfg = "exec", default = "//kernels/code_object:check_proofs"),
}
