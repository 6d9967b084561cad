# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository of the names of variant sets, without their contents."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz"

# The environment variable with the path of a variant set file outside of the source tree.
_VARIABLE = "AITER_ATTN_VARIANT_SET"

def is_set_name(name):
    """Whether a variant set can have a name.

    Args:
      name: a string.
    Returns:
      True for lower-case letters, digits and underscores, a letter first.
    """
    rest = [c for c in name.elems() if c not in _LETTERS + "0123456789_"]
    return bool(name and name[0] in _LETTERS and not rest)

def set_of_environment(context):
    """The variant set that the environment names.

    Args:
      context: of a repository rule or a module extension.
    Returns:
      Set name -> absolute path of its file: of one set, or none.
    """
    path = context.getenv(_VARIABLE)
    if not path:
        return {}
    name = path.rpartition("/")[2].removesuffix(".toml")
    if not path.startswith("/") or not path.endswith(".toml") or not is_set_name(name):
        fail(("%s=%s: want the absolute path of a file NAME.toml; NAME is lower-case letters, " +
              "digits and underscores, a letter first") % (_VARIABLE, path))
    return {name: path}

def variant_set_files(context, readme):
    """The variant set files of a folder.

    Args:
      context: of a repository rule or a module extension.
      readme: label of the folder's README.md.
    Returns:
      Set name -> file name, sorted. A name is lower-case letters, digits and underscores, a letter
      first; other files define no set.
    """
    names = {}
    for entry in context.path(readme).dirname.readdir():
        name, dot, extension = entry.basename.rpartition(".")
        if dot and extension == "toml" and is_set_name(name):
            names[name] = entry.basename
    return dict(sorted(names.items()))

def direction_names(text):
    """The directions of traits.toml.

    Args:
      text: the file's.
    Returns:
      The names, in its order.
    """
    head = "[directions."
    lines = [line.strip() for line in text.split("\n")]
    return [line[len(head):-1] for line in lines if line.startswith(head) and line.endswith("]")]

_KNOWN = """\"""Generated. Do not edit.\"""

DIRECTIONS = {directions}

VARIANT_SETS = {sets}
"""

_REPOSITORIES = """\"""Generated. Do not edit.\"""

load("@aiter_attn//kernels/ck_fmha:repositories.bzl", "variant_set_repositories")

def declare_variant_sets():
    variant_set_repositories({files}, paths = {paths})
"""

_SET_BUILD = """# Generated. Do not edit.
load("@aiter_attn//kernels/ck_fmha/private:packages.bzl", "variant_set_aliases")

variant_set_aliases("@variant_set_{name}//")
"""

_SET_INSTANCES = """\"""Generated. Do not edit.\"""

load("@variant_set_{name}//:instances.bzl", _INSTANCES = "INSTANCES", _LEFT_OUT = "LEFT_OUT")

INSTANCES = _INSTANCES

def instances_for(arch):
    # Instance -> its label, of those that there are for the arch.
    return {{
        name: label
        for name, label in INSTANCES.items()
        if arch not in _LEFT_OUT.get(name, {{}})
    }}
"""

def _variant_sets_repository_impl(rctx):
    files = variant_set_files(rctx, rctx.attr.readme)
    directions = direction_names(rctx.read(rctx.attr.traits))
    paths = set_of_environment(rctx)
    names = files.keys() + rctx.attr.outside
    for name in paths:
        if name in names:
            fail("%s=%s: there is a variant set %s already; rename the file" %
                 (_VARIABLE, paths[name], name))
    names = sorted(names + paths.keys())
    texts = {
        "BUILD.bazel": "",
        "known.bzl": _KNOWN.format(
            directions = directions,
            sets = names,
        ),
        "repositories.bzl": _REPOSITORIES.format(files = files, paths = paths),
    }
    for name in names:
        texts[name + "/BUILD.bazel"] = _SET_BUILD.format(name = name)
        texts[name + "/instances.bzl"] = _SET_INSTANCES.format(name = name)
    for path, text in texts.items():
        rctx.file(path, text, executable = False)

variant_sets_repository = repository_rule(
    implementation = _variant_sets_repository_impl,
    doc = """known.bzl has the names of variant sets and directions.

A package per set has aliases into the set's repository, which is fetched when one of them is asked
for.""",
    attrs = {
        "outside": attr.string_list(doc = "names of sets whose files are of other modules"),
        "readme": attr.label(mandatory = True, doc = "README.md of the folder of sets"),
        "traits": attr.label(mandatory = True, doc = "traits.toml"),
    },
)
