# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository of the names of variant sets and architectures, without what is in them."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz"

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
        rest = [c for c in name.elems() if c not in _LETTERS + "0123456789_"]
        if dot and extension == "toml" and name and name[0] in _LETTERS and not rest:
            names[name] = entry.basename
    return dict(sorted(names.items()))

def archs(text):
    """The architectures of archs.toml.

    Args:
      text: the file's: a table per architecture with its products and its compute_units. Tables
        within, [ARCH.NAME] and [[ARCH.NAME]], are read by others: ckgen/archs.py,
        resources/occupancy.py.

    Returns:
      Name -> compute units, sorted; fails where a table lacks a key, or a line is something else.
    """
    tables = {}
    arch = None
    within = False
    for line in text.split("\n"):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        key, equals, value = [part.strip() for part in line.partition("=")]
        if line.startswith("[") and line.endswith("]") and "." in line:
            within = True
        elif within and not line.startswith("["):
            continue
        elif line.startswith("[") and line.endswith("]"):
            arch = line[1:-1]
            within = False
            tables[arch] = {}
        elif arch and equals and key == "products" and value.startswith("\""):
            tables[arch][key] = value
        elif arch and equals and key == "compute_units" and value.isdigit() and int(value) > 0:
            tables[arch][key] = int(value)
        else:
            fail(("kernels/archs.toml: %r: a line is [ARCH], products = \"...\" or " +
                  "compute_units = a number.") % line)
    for key in ("products", "compute_units"):
        missing = [arch for arch, table in tables.items() if key not in table]
        if missing:
            fail("kernels/archs.toml: %s is missing of %s." % (key, ", ".join(missing)))
    if not tables:
        fail("kernels/archs.toml: no architecture.")
    return {arch: tables[arch]["compute_units"] for arch in sorted(tables)}

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

ARCHS = {archs}

COMPUTE_UNITS = {compute_units}

DIRECTIONS = {directions}

VARIANT_SETS = {sets}
"""

_REPOSITORIES = """\"""Generated. Do not edit.\"""

load("@aiter_attn//kernels/ck_fmha:repositories.bzl", "variant_set_repositories")

def declare_variant_sets():
    variant_set_repositories({files})
"""

_SET_BUILD = """# Generated. Do not edit.
load("@aiter_attn//kernels/ck_fmha/private:packages.bzl", "variant_set_aliases")

variant_set_aliases("@variant_set_{name}//")
"""

_SET_INSTANCES = """\"""Generated. Do not edit.\"""

load("@variant_set_{name}//:instances.bzl", _INSTANCES = "INSTANCES")

INSTANCES = _INSTANCES
"""

def _variant_sets_repository_impl(rctx):
    files = variant_set_files(rctx, rctx.attr.readme)
    compute_units = archs(rctx.read(rctx.attr.archs))
    directions = direction_names(rctx.read(rctx.attr.traits))
    texts = {
        "BUILD.bazel": "",
        "known.bzl": _KNOWN.format(
            archs = compute_units.keys(),
            compute_units = compute_units,
            directions = directions,
            sets = files.keys(),
        ),
        "repositories.bzl": _REPOSITORIES.format(files = files),
    }
    for name in files:
        texts[name + "/BUILD.bazel"] = _SET_BUILD.format(name = name)
        texts[name + "/instances.bzl"] = _SET_INSTANCES.format(name = name)
    for path, text in texts.items():
        rctx.file(path, text, executable = False)

variant_sets_repository = repository_rule(
    implementation = _variant_sets_repository_impl,
    doc = """known.bzl has the names of variant sets and directions, and archs with compute units.

A package per set has aliases into the set's repository, which is fetched when one of them is asked
for.""",
    attrs = {
        "archs": attr.label(mandatory = True, doc = "archs.toml"),
        "readme": attr.label(mandatory = True, doc = "README.md of the folder of sets"),
        "traits": attr.label(mandatory = True, doc = "traits.toml"),
    },
)
