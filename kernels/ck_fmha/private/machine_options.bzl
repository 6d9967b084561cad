# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""How machine code is generated, by pipeline, head size and architecture.

Chosen by what comes out. The figures are those of core's bf16 kernels; cycles are llvm-mca's for a
turn of the main loop, of one wave alone.
"""

def _llvm(*options):
    return [flag for option in options for flag in ("-mllvm", option)]

# Addresses and constants are made again in each turn of a loop; kept, they take registers.
_NO_LICM = ["-disable-machine-licm"]

# Every region is scheduled for the fewest registers, once those of the whole kernel are known.
_FEWEST_REGISTERS = ["-amdgpu-sched-strategy=iterative-minreg"] + _NO_LICM

# Pipeline, head size -> architecture -> flags. What is not here is left to the compiler.
_OPTIONS = {
    # 0.4 to 6.5 % fewer cycles.
    ("bwd_dq_dk_dv", "d128"): {
        "gfx942": _llvm(*_NO_LICM),
        "gfx950": _llvm(*_NO_LICM),
    },
    ("fwd_qr_async", "d128"): {
        # None of 72 registers is spilt, and a turn takes 38 % fewer cycles.
        "gfx942": _llvm(*_FEWEST_REGISTERS),
        # None of 80, and 40 %. The order of instruction selection must be for few registers, too:
        # without, 79 are still spilt.
        "gfx950": _llvm(*(_FEWEST_REGISTERS + ["-pre-RA-sched=list-burr"])),
    },
}

def machine_options(pipeline, head_size, arch):
    """The flags of code generation, beyond those of the recipe.

    Args:
      pipeline: as ckgen has it.
      head_size: as in the name of a package of the pool: d128, d192x128.
      arch: the architecture.
    Returns:
      A list of flags, or a select() of such.
    """
    options = _OPTIONS.get((pipeline, head_size), {}).get(arch)
    if not options:
        return []
    return select({
        Label("//kernels/ck_fmha:machine_options.upstream"): [],
        "//conditions:default": options,
    })
