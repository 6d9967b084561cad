# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Paths as they are in every checkout, in both dependency modes, and for every main module.

A repository's folder under external/ has its canonical name. That of one which a module extension
made depends on the dependency mode and on the main module: `_main~rocm~rocm` here,
`aiter_attn~~rocm~rocm` where another module depends on this one, `rocm` with a WORKSPACE. The
logical path has the last part. A module's own files are named from its root, as they are where it
is the main one.
"""

def _parts(canonical):
    """The parts of a canonical name; the separator is ~ up to Bazel 7, + from Bazel 8."""
    return canonical.replace("+", "~").split("~")

def _is_module(canonical):
    """Whether it is a module's repository: `name~` or `name~version`; an extension's has more."""
    return len(_parts(canonical)) == 2

def apparent_repository(canonical):
    """The name that a repository was declared under, from its canonical one.

    Args:
      canonical: the folder's name under external/; empty for the main repository.
    Returns:
      The name; empty for a module's repository, as for the main one.
    """
    return "" if _is_module(canonical) else _parts(canonical)[-1]

def logical_path(text):
    """text with every external/CANONICAL written external/APPARENT, or nothing for a module's.

    Args:
      text: a path, or a flag that holds paths.
    Returns:
      The text in its logical form.
    """
    head, _, _ = text.partition("external/")
    parts = [head]
    for piece in text.split("external/")[1:]:
        repository, slash, rest = piece.partition("/")
        apparent = apparent_repository(repository)
        if apparent:
            parts.append("external/" + apparent + slash + rest)
        else:
            parts.append(rest or ".")
    return "".join(parts)

def prefix_maps(roots):
    """Flags that keep the paths of repositories out of the compiler's output.

    Args:
      roots: repositories' folders, from the execution root; "" is the main repository's.
    Returns:
      A list of flags.
    """
    flags = []
    for root in roots:
        if _is_own(root):
            flags.append("-ffile-prefix-map=%s/=" % root)
        elif root:
            flags.append("-ffile-prefix-map=%s=%s" % (root, logical_path(root)))
    return flags

def logical_prefix_maps(roots):
    """The flags of prefix_maps as they enter a key: a module's own files need none in the main one.

    Args:
      roots: as those of prefix_maps.
    Returns:
      A list of flags.
    """
    return [logical_path(flag) for flag in prefix_maps([r for r in roots if not _is_own(r)])]

def _is_own(root):
    """Whether a repository's folder is a module's."""
    return bool(root) and logical_path(root) == "."
