# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Paths as they are in every checkout and both dependency modes.

A repository's folder under external/ has its canonical name, which depends on the dependency mode:
`_main~rocm~rocm` with modules, `rocm` with a WORKSPACE. The logical path has the last part.
"""

def apparent_repository(canonical):
    """The name that a repository was declared under, from its canonical one.

    Args:
      canonical: the folder's name under external/.
    Returns:
      The part behind the last separator (~ up to Bazel 7, + from Bazel 8).
    """
    return canonical.split("~")[-1].split("+")[-1]

def logical_path(text):
    """text with every external/CANONICAL written external/APPARENT.

    Args:
      text: a path, or a flag that holds paths.
    Returns:
      The text in its logical form.
    """
    head, _, _ = text.partition("external/")
    parts = [head]
    for piece in text.split("external/")[1:]:
        repository, slash, rest = piece.partition("/")
        parts.append("external/" + apparent_repository(repository) + slash + rest)
    return "".join(parts)

def prefix_maps(roots):
    """Flags that keep the paths of repositories out of the compiler's output.

    Args:
      roots: repositories' folders, from the execution root; "" is the main repository's.
    Returns:
      A list of flags.
    """
    return ["-ffile-prefix-map=%s=%s" % (root, logical_path(root)) for root in roots if root]
