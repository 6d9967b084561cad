# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The names and flags that follow from a set's list of kernels.

A list: name -> the operation, the source, and the flags that make it that kernel: shared, and by
archs, both sorted.
dealt_NAME is the kernel of calls without a barrier, where that is another for some arch;
handful_NAME, dozens_NAME and hundreds_NAME those of few rows.
"""

load("//kernels/norm:shapes.bzl", "kernels_of")

def flags_for(kernel, arch):
    """The flags that make a kernel.

    Args:
      kernel: of a list.
      arch: the one that it is compiled for.
    Returns:
      A list of str.
    """
    (flags,) = [
        flags
        for archs, flags in kernel["flags"].items()
        if arch in archs.split(" ")
    ]
    return sorted([flag for flag in (kernel["shared"] + " " + flags).split(" ") if flag])

def names_for(kernels, arch):
    """The kernels for an arch: of several names for one kernel, the last.

    Args:
      kernels: a list.
      arch: one that the list is for.
    Returns:
      A list of str.
    """
    return {
        (kernel["source"], tuple(flags_for(kernel, arch))): name
        for name, kernel in kernels.items()
    }.values()

def macros_for(kernel, arch):
    """The macros that make a kernel.

    Args:
      kernel: of a list.
      arch: the one that it is compiled for.
    Returns:
      dict: name -> value, an int where it is a number.
    """
    pairs = [flag.removeprefix("-D").split("=") for flag in flags_for(kernel, arch)]
    return {macro: int(value) if value.isdigit() else value for macro, value in pairs}

def shapes_for(kernels, arch):
    """The kernels of an arch, as SHAPES of //kernels/norm:shapes.bzl has others.

    Args:
      kernels: a list.
      arch: one that the list is for.
    Returns:
      dict: name -> struct of source, kernels and macros.
    """
    return {
        name: struct(
            kernels = {
                symbol: int(items)
                for symbol, items in work_items(kernels[name], arch).items()
            },
            macros = macros_for(kernels[name], arch),
            source = kernels[name]["source"].removesuffix(".cpp"),
        )
        for name in names_for(kernels, arch)
    }

def work_items(kernel, arch):
    """The work-items per workgroup of each of a code object's kernels.

    Args:
      kernel: of a list.
      arch: the one that it is compiled for.
    Returns:
      dict: symbol -> work-items, as text.
    """
    source = kernel["source"].removesuffix(".cpp")
    found = kernels_of(source, macros_for(kernel, arch))
    return {symbol: str(items) for symbol, items in found.items()}
