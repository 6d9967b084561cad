# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""te_prebuilt: AITER's libraries as TransformerEngine's set-up takes them from a server."""

load("//toolchains/python:defs.bzl", "PyToolInfo", "run_py_tool")
load(":pins.bzl", "PINS")

_DIGITS = "0123456789"
_HEXADECIMAL = _DIGITS + "abcdef"

def _all_of(text, characters):
    return text != "" and not [c for c in text.elems() if c not in characters]

def prebuilt_problem(commit, rocm):
    """The reason why te_prebuilt refuses its arguments.

    Args:
      commit: see te_prebuilt.
      rocm: see te_prebuilt.
    Returns:
      A message; "" where they are right.
    """
    if len(commit) != 40 or not _all_of(commit, _HEXADECIMAL) or commit[:7] not in PINS:
        return ("aiter_commit is \"%s\", but must be all 40 digits of a commit of one of %s" %
                (commit, ", ".join(PINS)))
    if [part for part in rocm.split(".") if not _all_of(part, _DIGITS)] or rocm.count(".") > 1:
        return "rocm is \"%s\", but must be a ROCm's version as \"7\" or \"7.2\"" % rocm
    return ""

def _te_prebuilt_impl(ctx):
    problem = prebuilt_problem(ctx.attr.aiter_commit, ctx.attr.rocm)
    if problem:
        fail("%s: %s" % (ctx.label, problem))
    key = "rocm-%s_aiter-%s" % (ctx.attr.rocm, ctx.attr.aiter_commit)
    archive = ctx.actions.declare_file("%s/%s.tar.gz" % (ctx.label.name, key))
    digest = ctx.actions.declare_file("%s/%s.tar.gz.sha256" % (ctx.label.name, key))
    arguments = ctx.actions.args()
    arguments.add("--out", archive)
    arguments.add("--")
    arguments.add_all(ctx.files.libraries)
    run_py_tool(
        ctx,
        tool = ctx.attr._write_prebuilt,
        arguments = [arguments],
        inputs = ctx.files.libraries,
        outputs = [archive, digest],
        mnemonic = "TePrebuilt",
        progress_message = "Writing %{label}",
    )
    return [DefaultInfo(files = depset([archive, digest]))]

_te_prebuilt = rule(
    implementation = _te_prebuilt_impl,
    attrs = {
        "aiter_commit": attr.string(mandatory = True),
        "libraries": attr.label_list(mandatory = True, allow_files = True),
        "rocm": attr.string(mandatory = True),
        "_write_prebuilt": attr.label(
            cfg = "exec",
            default = "//aiter/compat:write_prebuilt",
            providers = [PyToolInfo],
        ),
    },
)

def te_prebuilt(name, aiter_commit, rocm, **kwargs):
    """NAME/rocm-ROCM_aiter-COMMIT.tar.gz with the libraries of a pin, and its .sha256.

    Args:
      name: of the target.
      aiter_commit: all 40 digits; a pin of pins.bzl.
      rocm: the version that is in the file's name: major, or major.minor.
      **kwargs: of the rule.
    """
    _te_prebuilt(
        name = name,
        aiter_commit = aiter_commit,
        libraries = [
            Label("//aiter/compat:%s/%s" % (aiter_commit[:7], library))
            for library in ["libmha.a", "libmha_bwd.so", "libmha_fwd.so"]
        ] if not prebuilt_problem(aiter_commit, rocm) else [],
        rocm = rocm,
        **kwargs
    )
