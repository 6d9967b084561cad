# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""check_proofs: what locks have of kernels, held against their compiles before these run.

code_object's describe action goes by the same comparison, for each object, once it is there."""

load("//toolchains/python:defs.bzl", "run_py_tool")

def check_proofs(ctx, infos):
    """Says how many kernels a lock knows by another compile.

    In one line those that are compiled as unproven although a lock has their proofs, and in one
    those that have options which were chosen for another compile.

    Args:
      ctx: the rule's; it needs PROOFS_ATTRS.
      infos: CodeObjectInfo of the kernels.

    Returns:
      A list of File for the output group `_validation`: a build makes these without being asked.
      It is empty where the locks have nothing of the kernels.
    """
    proven = [(info, info.proof) for info in infos if info.proof]
    chosen = [(info, info.chosen) for info in infos if info.chosen]
    return (
        ([_check(ctx, "groups", ".unproven.json", proven)] if proven else []) +
        ([_check(ctx, "options", ".stale_options.json", chosen)] if chosen else [])
    )

def _check(ctx, of, suffix, known):
    """The file of those that a lock knows by another compile; known: [(info, of the lock)]."""
    kernels = ctx.actions.declare_file("%s.known_%s.json" % (ctx.label.name, of))
    ctx.actions.write(kernels, json.encode([
        {
            "arch": info.arch,
            "flags": entry.flags,
            "instance": info.instance,
            "key": entry.key,
            "recipe": info.recipe.path,
            "source": entry.source.path,
        }
        for info, entry in known
    ]))
    found = ctx.actions.declare_file(ctx.label.name + suffix)
    arguments = ctx.actions.args()
    arguments.add("--of", of)
    arguments.add("--kernels", kernels)
    arguments.add("--out", found)
    run_py_tool(
        ctx,
        tool = ctx.attr._check_proofs,
        arguments = [arguments],
        inputs = [kernels] + {info.recipe: None for info, _ in known}.keys() +
                 [entry.source for _, entry in known],
        outputs = [found],
        mnemonic = "CheckProofs",
        progress_message = "Checking the locks' %s of %%{label}" % of,
    )
    return found

PROOFS_ATTRS = {
    "_check_proofs": attr.label(cfg = "exec", default = "//kernels/code_object:check_proofs"),
}
