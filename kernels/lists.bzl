# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""@kernel_lists: JSON lists of kernels/, for Starlark, which reads no file while it loads.

The lock of compile groups is joined with those of variant sets that have one of their own; of a
group that both have, the latter's is taken.
"""

# File of the repository -> its constant, and where that is from.
_LISTS = {
    "groups.bzl": ("GROUPS", Label("//kernels/ck_fmha/groups:lock.json")),
    "norm_kernels.bzl": ("KERNELS", Label("//kernels/norm/ahead_of_time:kernels.json")),
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

def kernel_lists_repositories():
    """Declares @kernel_lists."""
    _kernel_lists_repository(name = "kernel_lists")

def _kernel_lists_impl(mctx):
    kernel_lists_repositories()
    return mctx.extension_metadata(reproducible = True)

kernel_lists = module_extension(
    implementation = _kernel_lists_impl,
    doc = "Declares @kernel_lists.",
)
