# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The names and targets that follow from kernels.json.

KERNELS: name -> its source, and by archs the flags that make it that kernel. dealt_NAME is the
kernel of calls without a barrier, where that is another for some arch; handful_NAME, dozens_NAME
and hundreds_NAME those of few rows.
"""

load("@kernel_lists//:norm_kernels.bzl", _KERNELS = "KERNELS")
load("//kernels/norm:shapes.bzl", "kernels_of")

KERNELS = _KERNELS

ARCHS = sorted({
    arch: True
    for kernel in KERNELS.values()
    for archs in kernel["flags"]
    for arch in archs.split(" ")
})

def flags_for(name, arch):
    """The flags that make a kernel.

    Args:
      name: of KERNELS.
      arch: of ARCHS.
    Returns:
      A list of str.
    """
    (flags,) = [
        flags
        for archs, flags in KERNELS[name]["flags"].items()
        if arch in archs.split(" ")
    ]
    return flags

def operation_of(name):
    """The operation of a kernel.

    Args:
      name: of KERNELS.
    Returns:
      "layer_forward" of "dealt_layer_forward_bf16_8192".
    """
    for prefix in ["dealt_", "dozens_", "handful_", "hundreds_"]:
        name = name.removeprefix(prefix)
    return "_".join(name.split("_")[:-2])

def _names(arch):
    """Kernels for arch: of several names for one kernel, the last."""
    kernels = {
        (KERNELS[name]["source"], tuple(flags_for(name, arch))): name
        for name in KERNELS
    }
    return kernels.values()

NAMES = {arch: _names(arch) for arch in ARCHS}

def chosen_of(archs):
    """The groups of the archs of the flag.

    Args:
      archs: of ARCHS.
    Returns:
      A sum of select()s.
    """
    labels = []
    for arch in archs:
        labels += select({
            ":%s.selected" % arch: [":" + arch],
            "//conditions:default": [],
        })
    return labels

def macros_for(name, arch):
    """The macros that make a kernel.

    Args:
      name: of KERNELS.
      arch: of ARCHS.
    Returns:
      dict: name -> value, an int where it is a number.
    """
    pairs = [flag.removeprefix("-D").split("=") for flag in flags_for(name, arch)]
    return {macro: int(value) if value.isdigit() else value for macro, value in pairs}

def shapes_for(arch):
    """The kernels of an arch, as SHAPES of //kernels/norm:shapes.bzl has others.

    Args:
      arch: of ARCHS.
    Returns:
      dict: name -> struct of source, kernels and macros.
    """
    return {
        name: struct(
            kernels = {symbol: int(items) for symbol, items in work_items(name, arch).items()},
            macros = macros_for(name, arch),
            source = KERNELS[name]["source"].removesuffix(".cpp"),
        )
        for name in NAMES[arch]
    }

def work_items(name, arch):
    """The work-items per workgroup of each of a code object's kernels.

    Args:
      name: of KERNELS.
      arch: the one that it is compiled for.
    Returns:
      dict: symbol -> work-items, as text.
    """
    source = KERNELS[name]["source"].removesuffix(".cpp")
    found = kernels_of(source, macros_for(name, arch))
    return {symbol: str(items) for symbol, items in found.items()}
