# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""JSON lists of kernels/, for Starlark, which reads no file while it loads: @kernel_lists, and
@norm_sets, which has a package for each set of norm kernels.

The lock of compile groups is joined with those of variant sets that have one of their own; of a
group that both have, the latter's is taken.
"""

# File of the repository -> its constant, and where that is from.
_LISTS = {
    "groups.bzl": ("GROUPS", Label("//kernels/ck_fmha/groups:lock.json")),
    "option_choices.bzl": ("OPTION_CHOICES", Label("//kernels/ck_fmha/options:choices.json")),
    "options.bzl": ("OPTIONS_LOCK", Label("//kernels/ck_fmha/options:lock.json")),
}

_VARIANTS_README = Label("//kernels/variants:README.md")
_OWN_LOCK = ".lock.json"

def _check_lines(text, name):
    """Fails on a name that two lines of an object of lines have: a decoder takes the last."""
    section, seen = None, {}
    for line in text.splitlines():
        key = line.partition("\": ")[0]
        if line.endswith(": {"):
            section, place = key, (None, key)
        else:
            place = (section, key)
        if line.startswith("\"") and place in seen:
            fail("%s: %s is there twice: delete one of both lines." % (name, key[1:]))
        seen[place] = None

def _object(rctx, file, name):
    """The JSON object that a file has."""
    text = rctx.read(file)
    value = json.decode(text, default = None)
    if type(value) != "dict":
        fail("%s: not a JSON object; restore the file." % name)
    _check_lines(text, name)
    return value

def _own_locks(rctx):
    """The locks of variant sets that have one of their own, by name, beside their files."""
    return [
        (entry.basename, _object(rctx, entry, "kernels/variants/" + entry.basename))
        for entry in rctx.path(_VARIANTS_README).dirname.readdir()
        if entry.basename.endswith(_OWN_LOCK)
    ]

def _kernel_lists_repository_impl(rctx):
    rctx.file("BUILD.bazel", executable = False)
    for file, (constant, source) in _LISTS.items():
        value = _object(rctx, source, "%s/%s" % (source.package, source.name))
        if constant == "GROUPS":
            for name, lock in sorted(_own_locks(rctx)):
                for arch, groups in lock.items():
                    if type(groups) != "dict":
                        fail(("kernels/variants/%s: %s has no groups; restore the file, or " +
                              "delete it: nothing is proven then.") % (name, arch))
                    value[arch] = value.get(arch, {}) | groups
        text = "\"\"\"Generated. Do not edit.\"\"\"\n\n%s = %s\n" % (constant, repr(value))
        rctx.file(file, text, executable = False)

_kernel_lists_repository = repository_rule(
    implementation = _kernel_lists_repository_impl,
    doc = "A .bzl file for each of _LISTS.",
)

# A file of the folder of sets of norm kernels.
_NORM_SETS = Label("//kernels/norm/sets:sets.py")

_NORM_SET_BUILD = """# Generated. Do not edit.
load("@aiter_attn//kernels/norm/ahead_of_time:packages.bzl", "norm_set_package")
load(":kernels.bzl", "KERNELS")

norm_set_package("{name}", KERNELS)
"""

def _norm_sets_repository_impl(rctx):
    sets = {}
    for entry in rctx.path(_NORM_SETS).dirname.readdir():
        name = entry.basename.removesuffix(".toml")
        if name + ".toml" != entry.basename:
            continue
        file = entry.dirname.get_child(name + ".json")
        if not file.exists:
            fail("%s/%s has no list beside it; write it: ./bazelw run //aiter/norm:sets" %
                 (_NORM_SETS.package, entry.basename))
        sets[name] = _object(rctx, file, "%s/%s.json" % (_NORM_SETS.package, name))
    archs = {
        arch: None
        for kernels in sets.values()
        for kernel in kernels.values()
        for names in kernel["flags"]
        for arch in names.split(" ")
    }
    known = "\"\"\"Generated. Do not edit.\"\"\"\n\nARCHS = %s\n\nNORM_SETS = %s\n" % (
        repr(sorted(archs)),
        repr(sorted(sets)),
    )
    rctx.file("BUILD.bazel", executable = False)
    rctx.file("known.bzl", known, executable = False)
    for name, kernels in sets.items():
        text = "\"\"\"Generated. Do not edit.\"\"\"\n\nKERNELS = %s\n" % repr(kernels)
        rctx.file(name + "/kernels.bzl", text, executable = False)
        rctx.file(name + "/BUILD.bazel", _NORM_SET_BUILD.format(name = name), executable = False)

_norm_sets_repository = repository_rule(
    implementation = _norm_sets_repository_impl,
    doc = "known.bzl has the names of sets and archs; a set's package has its kernels.",
)

def kernel_lists_repositories():
    """Declares @kernel_lists and @norm_sets."""
    _kernel_lists_repository(name = "kernel_lists")
    _norm_sets_repository(name = "norm_sets")

def _kernel_lists_impl(mctx):
    kernel_lists_repositories()
    return mctx.extension_metadata(reproducible = True)

kernel_lists = module_extension(
    implementation = _kernel_lists_impl,
    doc = "Declares @kernel_lists and @norm_sets.",
)
