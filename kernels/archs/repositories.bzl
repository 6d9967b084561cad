# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""@archs: the records of this folder, read and checked once."""

_COMPUTE_UNIT = [
    "simds",
    "waves_per_simd",
    "vgprs",
    "vgpr_granule",
    "sgprs",
    "sgpr_granule",
    "lds",
    "lds_granule",
]

def _is_count(value):
    return type(value) == "int" and value > 0

def _is_compute_unit(value):
    return (type(value) == "dict" and sorted(value) == sorted(_COMPUTE_UNIT) and
            all([_is_count(limit) for limit in value.values()]))

def _is_left_out(value):
    return type(value) == "list" and all([
        type(table) == "dict" and type(table.get("because")) == "string" and table["because"]
        for table in value
    ])

# Fact -> whether a value can be one, and which values can, in words.
_FACTS = {
    "products": (lambda value: type(value) == "string" and value, "a text"),
    "wave_size": (lambda value: value in [32, 64], "32 or 64"),
    "fp8": (
        lambda value: value in ["e4m3", "e4m3fnuz", "none"],
        "\"e4m3\", \"e4m3fnuz\" or \"none\"",
    ),
    "executed": (lambda value: type(value) == "bool", "true or false"),
    "compute_units": (_is_count, "a number above 0"),
    "compute_unit": (_is_compute_unit, "numbers above 0 for each of " + ", ".join(_COMPUTE_UNIT)),
    "left_out": (_is_left_out, "a list of tables, each with a reason, \"because\": \"...\""),
}

def problem_of(record):
    """The first thing that is wrong with a record.

    Args:
      record: as json.decode() gives it; None where the file is no JSON.
    Returns:
      A text, or None for a record that is whole.
    """
    if type(record) != "dict":
        return "not a JSON object of facts; write " + ", ".join(_FACTS)
    for fact in record:
        if fact not in _FACTS:
            return "unknown fact %r; known: %s" % (fact, ", ".join(_FACTS))
    for fact, (is_valid, allowed) in _FACTS.items():
        if fact not in record:
            return "%s is missing; write %s" % (fact, allowed)
        if not is_valid(record[fact]):
            return "%s is %s; write %s" % (fact, json.encode(record[fact]), allowed)
    return None

def _archs_repository_impl(rctx):
    records = {}
    for entry in rctx.path(rctx.attr.readme).dirname.readdir():
        name, dot, extension = entry.basename.rpartition(".")
        if dot and extension == "json":
            record = json.decode(rctx.read(entry), default = None)
            problem = problem_of(record)
            if problem:
                fail("kernels/archs/%s: %s." % (entry.basename, problem))
            records[name] = record
    if not records:
        fail("kernels/archs: no ARCH.json: no arch.")
    records = dict(sorted(records.items()))
    rctx.file("BUILD.bazel", "exports_files([\"archs.json\"])\n", executable = False)
    rctx.file(
        "archs.bzl",
        "\"\"\"Generated. Do not edit.\"\"\"\n\nARCHS = %s\n" % repr(records),
        executable = False,
    )
    rctx.file("archs.json", json.encode_indent(records) + "\n", executable = False)

_archs_repository = repository_rule(
    implementation = _archs_repository_impl,
    doc = "archs.bzl and archs.json: arch -> its facts, sorted.",
    attrs = {"readme": attr.label(mandatory = True, doc = "README.md of the folder of records")},
)

def archs_repositories():
    """Declares @archs."""
    _archs_repository(name = "archs", readme = Label("//kernels/archs:README.md"))
