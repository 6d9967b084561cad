# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""@kernel_lists: JSON lists of kernels/, for Starlark, which reads no file while it loads."""

# File of the repository -> its constant, and where that is from.
_LISTS = {
    "groups.bzl": ("GROUPS", Label("//kernels/ck_fmha/groups:lock.json")),
    "norm_kernels.bzl": ("KERNELS", Label("//kernels/norm/ahead_of_time:kernels.json")),
}

def _kernel_lists_repository_impl(rctx):
    rctx.file("BUILD.bazel", executable = False)
    for file, (constant, source) in _LISTS.items():
        value = json.decode(rctx.read(source), default = None)
        if type(value) != "dict":
            fail("%s/%s: not a JSON object; restore the file." % (source.package, source.name))
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
