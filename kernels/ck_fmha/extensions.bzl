# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The module extension of upstream's fused attention."""

load(
    "//kernels/ck_fmha/private:variant_sets_repository.bzl",
    "is_set_name",
    "set_of_environment",
    "variant_set_files",
)
load(
    ":repositories.bzl",
    "VARIANTS_README",
    "ck_fmha_repositories",
    "variant_set_repositories",
)

def _labels(mctx, files):
    """Set name -> label of its file, of the sets that modules declare."""
    labels = {}
    for module in mctx.modules:
        for tag in module.tags.variant_set:
            if not is_set_name(tag.name):
                fail(("variant_set(name = \"%s\") of %s: want lower-case letters, digits and " +
                      "underscores, a letter first") % (tag.name, module.name))
            if tag.name in files or tag.name in labels:
                fail("variant_set(name = \"%s\") of %s: there is a set of that name already" %
                     (tag.name, module.name))
            labels[tag.name] = tag.file
    return labels

def _ck_fmha_impl(mctx):
    files = variant_set_files(mctx, VARIANTS_README)
    labels = _labels(mctx, files)
    ck_fmha_repositories(outside = labels.keys())
    variant_set_repositories(files, labels = labels, paths = set_of_environment(mctx))
    return mctx.extension_metadata(reproducible = True)

ck_fmha = module_extension(
    implementation = _ck_fmha_impl,
    doc = "Declares the repositories of repositories.bzl, and one per variant set.",
    tag_classes = {
        "variant_set": tag_class(
            doc = "A variant set for --@aiter_attn//kernels:variants=NAME.",
            attrs = {
                "file": attr.label(
                    mandatory = True,
                    doc = "a variant set file, or a manifest of QoLA's",
                ),
                "name": attr.string(mandatory = True),
            },
        ),
    },
)
