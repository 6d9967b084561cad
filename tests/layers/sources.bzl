# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""sources: the files of this repository that C++ targets are compiled of."""

_SourcesInfo = provider(
    doc = "C and C++ files of this repository.",
    fields = {"files": "depset of File"},
)

_EXTENSIONS = ["c", "cc", "cpp", "h", "hpp"]

# Of C++ targets, and of code objects: their recipes have the headers.
_ATTRIBUTES = ["deps", "hdrs", "headers", "recipe", "srcs"]

def _as_list(value):
    return value if type(value) == "list" else [value]

def _sources_aspect_impl(_target, ctx):
    files = [
        file
        for name in ["hdrs", "src", "srcs", "textual_hdrs"]
        for file in getattr(ctx.rule.files, name, [])
        if file.is_source and file.extension in _EXTENSIONS and not file.owner.workspace_name
    ]
    return [_SourcesInfo(files = depset(files, transitive = [
        dep[_SourcesInfo].files
        for name in _ATTRIBUTES
        for dep in _as_list(getattr(ctx.rule.attr, name, None))
        if type(dep) == "Target" and _SourcesInfo in dep
    ]))]

_sources_aspect = aspect(
    implementation = _sources_aspect_impl,
    attr_aspects = _ATTRIBUTES,
)

def _sources_impl(ctx):
    return [DefaultInfo(files = depset(transitive = [
        dep[_SourcesInfo].files
        for dep in ctx.attr.deps
    ]))]

sources = rule(
    implementation = _sources_impl,
    doc = "The C and C++ files of this repository that deps are compiled of.",
    attrs = {"deps": attr.label_list(aspects = [_sources_aspect], mandatory = True)},
)
