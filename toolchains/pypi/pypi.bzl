# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Repository rules for locked files of Python distributions: sdists and wheels."""

load("//toolchains/locks:fetch.bzl", "fetch_locked")
load(":bytecode.bzl", "compile_python")

PYPI = Label("//toolchains/pypi:fetch.py")

# extract() takes folders.
_EXTRACT_FILE = """
import pathlib, sys, zipfile
archive, inside, path = sys.argv[1:]
pathlib.Path(path).write_bytes(zipfile.ZipFile(archive).read(inside))
"""

def _extract_file(rctx, wheel, inside, path):
    got = rctx.execute([rctx.which("python3"), "-B", "-c", _EXTRACT_FILE, wheel, inside, path])
    if got.return_code:
        fail("%s: %s: no %s can be taken from it: %s" % (rctx.name, wheel, inside, got.stderr))

def _pypi_archive_impl(rctx):
    attr = rctx.attr
    if bool(attr.build_file) == bool(attr.build_file_content):
        fail("pypi_archive %s: set one of build_file and build_file_content" % rctx.name)
    (entry,) = fetch_locked(rctx, PYPI, ".archive", [attr.distribution, attr.kind])
    filename = entry["filename"]
    rctx.report_progress("unpacking " + filename)
    root = [filename.removesuffix(".tar.gz")] if attr.kind == "sdist" else []
    root += [attr.strip_prefix] if attr.strip_prefix else []
    for folder in attr.include or [""]:
        inside = "/".join(root + ([folder] if folder else []))
        rctx.extract(entry["file"], "%s/%s" % (attr.output, folder), inside)
    for path in attr.files:
        _extract_file(rctx, entry["file"], "/".join(root + [path]), "%s/%s" % (attr.output, path))
    if attr.dist_info:
        inside = "-".join(filename.split("-")[:2]) + ".dist-info"
        rctx.extract(entry["file"], "%s/dist-info" % attr.output, inside)
    rctx.delete(".archive")
    for patch in attr.patches:
        rctx.patch(patch, strip = 1)
    for interpreter in attr.bytecode_of:
        compile_python(rctx, interpreter, attr.output)
    rctx.file("lock_digest.bzl", "LOCK_DIGEST = \"%s\"\n" % entry["sha256"])
    content = rctx.read(attr.build_file) if attr.build_file else attr.build_file_content
    rctx.file("BUILD.bazel", content, executable = False)

pypi_archive = repository_rule(
    implementation = _pypi_archive_impl,
    doc = """The unpacked contents of one locked file, the given BUILD file, and
`lock_digest.bzl` with LOCK_DIGEST (the file's sha256).""",
    attrs = {
        "build_file": attr.label(
            doc = "becomes the BUILD.bazel at the root",
            allow_single_file = True,
        ),
        "build_file_content": attr.string(doc = "the same, given as text"),
        "bytecode_of": attr.label_list(doc = "the Pythons that the modules are compiled for"),
        "dist_info": attr.bool(doc = "a wheel's dist-info folder is there, too, under this name"),
        "distribution": attr.string(mandatory = True, doc = "its name, as in the lock"),
        "files": attr.string_list(
            doc = "of a wheel: single files below strip_prefix that are unpacked beside include",
        ),
        "include": attr.string_list(
            doc = "folders below strip_prefix that are unpacked, keeping their paths; " +
                  "empty: everything",
        ),
        "kind": attr.string(
            mandatory = True,
            doc = "which of its files: sdist, any (a wheel for every Python), cp311, ...",
        ),
        "output": attr.string(default = ".", doc = "folder that the archive is unpacked to"),
        "patches": attr.label_list(
            allow_files = True,
            doc = "applied in order, as `patch -p1` at the root",
        ),
        "strip_prefix": attr.string(
            doc = "folder whose contents are unpacked; the NAME-VERSION folder that every " +
                  "sdist has is stripped without being named",
        ),
    },
)

_LOCK = Label("//toolchains/pypi:lock.json")

def _pypi_environment_impl(rctx):
    kind = rctx.attr.kind
    distributions = json.decode(rctx.read(_LOCK))["distributions"]
    for name in sorted(distributions):
        if kind in distributions[name]["files"]:
            (entry,) = fetch_locked(rctx, PYPI, ".archive", [name, kind])
            rctx.extract(entry["file"], "site-packages")
    rctx.delete(".archive")
    for folder in rctx.attr.unused:
        rctx.delete("site-packages/" + folder)
    rctx.file("BUILD.bazel", """load("@rules_python//python:defs.bzl", "py_library")

exports_files(glob(["site-packages/*.py"]))

py_library(
    name = "{name}",
    data = glob(["site-packages/**"]),
    imports = ["site-packages"],
    visibility = ["//visibility:public"],
)
""".format(name = rctx.attr.target))

pypi_environment = repository_rule(
    implementation = _pypi_environment_impl,
    doc = "The wheels of one kind of all distributions, unpacked into one folder, site-packages.",
    attrs = {
        "kind": attr.string(mandatory = True, doc = "of the lock's files: site, tools"),
        "target": attr.string(mandatory = True, doc = "name of the py_library"),
        "unused": attr.string_list(doc = "folders of site-packages that nothing needs"),
    },
)

def _pypi_choice_impl(rctx):
    branches = {rctx.attr.settings[abi]: target for abi, target in rctx.attr.targets.items()}
    rctx.file("BUILD.bazel", """alias(
    name = "{name}",
    actual = select(
        {branches},
        no_match_error = "{name} is locked for {abis}; choose one with --//toolchains/python:abi",
    ),
    visibility = ["//visibility:public"],
)
""".format(
        name = rctx.attr.target,
        branches = json.encode(branches),
        abis = ", ".join(sorted(rctx.attr.targets)),
    ), executable = False)

pypi_choice = repository_rule(
    implementation = _pypi_choice_impl,
    doc = "A library that is one of several, by the Python ABI that is built for.",
    attrs = {
        "settings": attr.string_dict(mandatory = True, doc = "ABI -> config_setting"),
        "target": attr.string(mandatory = True, doc = "name of the alias"),
        "targets": attr.string_dict(mandatory = True, doc = "ABI -> the library for it"),
    },
)
