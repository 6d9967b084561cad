# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""@checkout: the sources of this checkout, all of them, as they are in its folders."""

# Folders of the checkout; a folder that Bazel or an editor keeps there is of no room.
_ROOMS = ["aiter", "docs", "kernels", "python", "tests", "toolchains"]
_EXTENSIONS = ["bazel", "bzl", "c", "cc", "cpp", "h", "hip", "hpp", "py", "pyi", "S"]

# More than there are folders: Starlark has no loop without an end.
_MOST_FOLDERS = 100000

def _checkout_repository_impl(rctx):
    root = rctx.path(rctx.attr.module).dirname
    texts = {}
    for room in _ROOMS:
        # Each folder for itself could not be taken away again.
        rctx.watch_tree(root.get_child(room))
    pending = [(room, root.get_child(room)) for room in _ROOMS]
    for _ in range(_MOST_FOLDERS):
        if not pending:
            break
        name, folder = pending.pop()
        for entry in folder.readdir(watch = "no"):
            below = "%s/%s" % (name, entry.basename)
            if entry.is_dir:
                if entry.basename[0] != "." and entry.basename != "__pycache__":
                    pending.append((below, entry))
            elif entry.basename.rpartition(".")[2] in _EXTENSIONS:
                texts[below] = rctx.read(entry, watch = "no")
    rctx.file("BUILD.bazel", "exports_files([\"sources.json\"])\n", executable = False)
    rctx.file("sources.json", json.encode(texts), executable = False)

_checkout_repository = repository_rule(
    implementation = _checkout_repository_impl,
    doc = "sources.json: path -> text of each source of this checkout.",
    attrs = {"module": attr.label(mandatory = True, doc = "MODULE.bazel, in the root")},
)

def checkout_repositories():
    """Declares @checkout."""
    _checkout_repository(name = "checkout", module = Label("//:MODULE.bazel"))

def _checkout_impl(mctx):
    checkout_repositories()
    return mctx.extension_metadata(reproducible = True)

checkout = module_extension(
    implementation = _checkout_impl,
    doc = "Declares @checkout.",
)
