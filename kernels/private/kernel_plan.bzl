# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""kernel_plan: the list of kernels that a build compiles, written before it compiles any."""

def kernel_plan(ctx, infos, figures = None):
    """Writes the list that `./bazelw` tells the progress of a build from: docs/builds.md.

    Args:
      ctx: the rule's.
      infos: CodeObjectInfo of the kernels.
      figures: a File: compile_cost.toml, which has the kernels' kinds.

    Returns:
      The file, for the output group `_validation`: a build makes these of its targets, and of all
      that they depend on, without being asked.
    """
    plan = ctx.actions.declare_file(ctx.label.name + ".plan.json")
    compiled = [info for info in infos if info.compiled]
    ctx.actions.write(plan, json.encode({
        "figures": figures.path if figures else "",
        "kernels": [
            ([file.path for file in info.compiled] + [""])[:2]
            for info in compiled
        ],
        "recipes": [info.recipe.path for info in compiled],
    }))
    return plan
