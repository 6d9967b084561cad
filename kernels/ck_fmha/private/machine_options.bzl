# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Options of code generation: of a kernel by itself where options/lock.json has it, else by package
of the pool, pipeline and arch.

These options of LLVM's code generation change no IR, only the machine code: registers, schedule,
spills. The evidence is in docs/performance.md, and `./bazelw run //kernels:resources` gives it
anew, of core. A pipeline that was not measured has none: it is compiled as the compiler does by
default.
"""

load("@archs//:archs.bzl", "ARCHS")
load("@ck_fmha//:pipelines.bzl", "PIPELINES")
load("//kernels/ck_fmha/options:chosen.bzl", "CHOICES", "OPTIONS", "chosen_options")

# Addresses and constants are made again in each turn of a loop; kept, they take registers.
_NO_LICM = OPTIONS["L"]

# The same of what is computed twice.
_NO_CSE = OPTIONS["C"]

# Every region is scheduled for the fewest registers, once those of the whole kernel are known.
_SCHEDULE_FOR_REGISTERS = OPTIONS["M"]

# Instructions are selected in an order for few registers, or for much at once.
_SELECT_FOR_REGISTERS = OPTIONS["B"]
_SELECT_FOR_PARALLELISM = OPTIONS["I"]

_FEWEST_REGISTERS = [_SCHEDULE_FOR_REGISTERS, _NO_LICM, _SELECT_FOR_REGISTERS]
_FEW_REGISTERS = [_SCHEDULE_FOR_REGISTERS, _NO_LICM, _SELECT_FOR_PARALLELISM]

# Package of the pool -> pipeline -> arch -> options. Cycles are llvm-mca's for a turn of
# the main loop.
_OPTIONS = {
    "bwd/bf16_d128": {
        "bwd_dq_dk_dv_kr_ktr_vr_iglp": {
            # 2.3 to 7.5 %.
            "gfx950": [_NO_LICM, _SELECT_FOR_PARALLELISM],
        },
        # Without a mask none of 13 registers is spilt, with one 14 of 21 are.
        "bwd_dq_dk_dv_trload_kr_ktr_vr": {
            "gfx950": [_NO_LICM, _NO_CSE],
        },
    },
    "bwd/bf16_d64": {
        "bwd_dq_dk_dv_kr_ktr_vr_iglp": {
            # 4.2 to 10.9 %.
            "gfx942": [_SELECT_FOR_REGISTERS],
            "gfx950": [_SELECT_FOR_REGISTERS],
        },
    },
    "bwd/fp16_d64": {
        "bwd_dq_dk_dv_kr_ktr_vr_iglp": {
            # 3.4 to 4.7 %.
            "gfx942": [_SELECT_FOR_REGISTERS],
            # 0.1 to 1 %.
            "gfx950": [_NO_LICM],
        },
    },
    # None of 66 to 80 registers is spilt, and a turn takes 35 to 40 % fewer cycles.
    "fwd/bf16_d128": {
        "fwd_qr_async": {
            "gfx942": _FEWEST_REGISTERS,
            "gfx950": _FEWEST_REGISTERS,
        },
        # None of 105 to 107, and 39 to 51 % fewer cycles.
        "fwd_qr_async+alibi": {
            "gfx942": _FEW_REGISTERS,
            "gfx950": _FEW_REGISTERS,
        },
    },
    "fwd/fp16_d128": {
        "fwd_qr_async": {
            "gfx942": _FEWEST_REGISTERS,
            "gfx950": _FEWEST_REGISTERS,
        },
        # Its scratch accesses in the loop are gone, and 6 to 7 % of its cycles.
        "fwd_qr_async+dropout+logits_soft_cap": {
            "gfx942": [_NO_LICM],
            "gfx950": [_NO_LICM],
        },
    },
    # No scratch access in the loop is left in these, of 68 to 4, and 39 to 9 % of the cycles go.
    "fwd/fp16_d256": {
        "fwd_qr+bias": {
            "gfx942": _FEW_REGISTERS,
            "gfx950": _FEW_REGISTERS,
        },
    },
    "fwd_pagedkv/bf16_d128": {
        "fwd_pagedkv_qr_pagedkv+alibi": {
            "gfx942": _FEWEST_REGISTERS,
            "gfx950": [_SELECT_FOR_PARALLELISM],
        },
        # It spilt nothing, but two waves fit in place of one.
        "fwd_pagedkv_qr_pagedkv+bias": {
            "gfx942": [_SELECT_FOR_PARALLELISM],
        },
    },
    "fwd_pagedkv/fp16_d128": {
        "fwd_pagedkv_qr_pagedkv+logits_soft_cap": {
            "gfx942": _FEW_REGISTERS,
        },
    },
}

def _check():
    """Fails on a misspelt name, which would hold for no kernel, silently."""
    for package, pipelines in _OPTIONS.items():
        if package not in PIPELINES:
            fail("machine_options.bzl: %s is no package of the pool; known: %s" %
                 (package, ", ".join(PIPELINES)))
        for pipeline, archs in pipelines.items():
            if pipeline not in PIPELINES[package]:
                fail("machine_options.bzl: %s has no pipeline %s; known: %s" %
                     (package, pipeline, ", ".join(PIPELINES[package])))
            for arch, options in archs.items():
                if arch not in ARCHS:
                    fail("machine_options.bzl: %s is no arch of kernels/archs; known: %s" %
                         (arch, ", ".join(ARCHS)))
                if tuple(options) not in CHOICES:
                    fail("machine_options.bzl: %s is no choice of options/choices.json: add it" %
                         options)

_check()

def _tuned(value, otherwise):
    """An attribute's value, and another where machine_options=upstream."""
    return select({
        Label("//kernels/ck_fmha:machine_options.upstream"): otherwise,
        "//conditions:default": value,
    })

def machine_options(package, pipeline, instance, arch):
    """The flags of code generation, beyond those of the recipe.

    Args:
      package: of the pool.
      pipeline: of the package.
      instance: of the pipeline.
      arch: one of kernels/archs.
    Returns:
      A struct of attributes of code_object: `copts`, a list of flags, and `chosen_for`; each may be
      a select() of such.
    """
    chosen = chosen_options(package, instance, arch)
    if chosen:
        options = chosen["options"]
    else:
        options = _OPTIONS.get(package, {}).get(pipeline, {}).get(arch)
    flags = [flag for option in options or [] for flag in ("-mllvm", option)]
    return struct(
        chosen_for = _tuned(chosen["key"], "") if chosen else "",
        copts = _tuned(flags, []) if flags else [],
    )
