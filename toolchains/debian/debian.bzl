# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A repository rule for trees of locked Debian packages."""

load("//toolchains/locks:fetch.bzl", "fetch_locked", "lock_identity")

_REGISTRY = Label("//toolchains/debian:fetch.py")

_PATTERN_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-/*?[]@%="

def _patterns(values, attribute):
    for value in values:
        bad = [c for c in value.elems() if c not in _PATTERN_CHARACTERS]
        if bad or not value:
            fail("%s: pattern %r holds %s; allowed are %s" %
                 (attribute, value, bad or "nothing", _PATTERN_CHARACTERS))
    return "|".join(values)

def debian_tree(rctx, group, packages = [], keep = [], exclude = [], strip_prefix = ""):
    """Downloads and unpacks locked packages into the repository that rctx makes.

    For repository rules that do more than debian_packages. Besides the tree it writes
    debian_lock.json (the packages unpacked) and lock_digest.bzl (LOCK_DIGEST, a sha256 over
    their names and sha256s: the tree's identity).

    Args:
      rctx: the repository context.
      group: the lock's group.
      packages: names of the packages wanted; all of the group's when empty.
      keep: shell patterns on paths like "usr/bin/clang", where "*" also matches "/"; files
        that match none are removed. Empty: all are kept.
      exclude: patterns of files that are removed, even if they match `keep`.
      strip_prefix: folder whose contents alone are unpacked, to the root; `keep` and `exclude`
        then apply to paths below it.

    Returns:
      The packages unpacked: name -> sha256.
    """
    kept, excluded = _patterns(keep, "keep"), _patterns(exclude, "exclude")
    entries = fetch_locked(rctx, _REGISTRY, "debs", [group] + packages)
    for entry in entries:
        rctx.report_progress("unpacking " + entry["name"])
        rctx.extract(entry.pop("file"), ".deb")
        members = [p for p in rctx.path(".deb").readdir() if p.basename.startswith("data.tar")]
        if len(members) != 1:
            fail("%s: not a Debian package: it has no data.tar" % entry["name"])
        rctx.extract(members[0], "", strip_prefix)
        rctx.delete(".deb")
    rctx.delete("debs")
    script = rctx.path(Label("//toolchains/debian/private:unpack.sh"))
    got = rctx.execute(["sh", script, kept, excluded], timeout = 600)
    if got.return_code:
        fail("cannot tidy the unpacked tree of group %s: %s" % (group, got.stderr))
    digests = {entry["name"]: entry["sha256"] for entry in entries}
    rctx.file("debian_lock.json", json.encode_indent(entries, indent = " ") + "\n")
    rctx.file(
        "lock_digest.bzl",
        "LOCK_DIGEST = \"%s\"\n" % lock_identity(rctx, digests),
    )
    return digests

def _digest(rctx, file):
    """Returns the string that a .bzl file of one assignment assigns."""
    return rctx.read(file).split("\"")[1]

def _debian_packages_impl(rctx):
    attr = rctx.attr
    if attr.build_file and attr.build_file_content:
        fail("debian_packages %s: set one of build_file and build_file_content" % rctx.name)
    debian_tree(
        rctx,
        attr.group,
        attr.packages,
        attr.keep,
        attr.exclude,
        attr.strip_prefix,
    )
    if attr.identities:
        digests = {
            name: _digest(rctx, label)
            for label, name in (attr.identities | {"lock_digest.bzl": attr.group}).items()
        }
        identity = lock_identity(rctx, digests)
        rctx.file("identity.bzl", "IDENTITY = \"%s\"\n" % identity, executable = False)
    for label, path in attr.files.items():
        rctx.file(path, rctx.read(label), executable = True)
    content = rctx.read(attr.build_file) if attr.build_file else attr.build_file_content
    if content:
        rctx.file("BUILD.bazel", content, executable = False)

debian_packages = repository_rule(
    implementation = _debian_packages_impl,
    doc = """A tree of locked Debian packages: the unpacked files, the given BUILD file,
`lock_digest.bzl` with LOCK_DIGEST (identity of the tree) and `debian_lock.json`.""",
    attrs = {
        "build_file": attr.label(
            doc = "becomes the BUILD.bazel at the root; without it the packages' own one stays",
            allow_single_file = True,
        ),
        "build_file_content": attr.string(doc = "the same, given as text"),
        "exclude": attr.string_list(
            doc = "patterns of files that are removed, even if they match `keep`",
        ),
        "files": attr.label_keyed_string_dict(
            doc = "text file -> path in the tree that it is written to, executable",
            allow_files = True,
        ),
        "group": attr.string(mandatory = True, doc = "group of the lock"),
        "identities": attr.label_keyed_string_dict(
            doc = "lock_digest.bzl or identity.bzl of another tree -> the tree's name: with any, " +
                  "identity.bzl has IDENTITY, a sha256 over theirs and this tree's LOCK_DIGEST, " +
                  "which is named as the group is",
            allow_files = True,
        ),
        "keep": attr.string_list(
            doc = "shell patterns on paths like usr/bin/clang, \"*\" also matches \"/\"; " +
                  "files that match none are removed; empty: all are kept",
        ),
        "packages": attr.string_list(
            doc = "packages of the group that are wanted; empty: all",
        ),
        "strip_prefix": attr.string(
            doc = "folder whose contents alone are unpacked, to the root of the tree",
        ),
    },
)

def _debian_archives_impl(rctx):
    fetch_locked(rctx, _REGISTRY, "debs", [rctx.attr.group])
    rctx.file("BUILD.bazel", """filegroup(
    name = "debs",
    srcs = glob(["debs/*.deb"]),
    visibility = ["//visibility:public"],
)
""", executable = False)

debian_archives = repository_rule(
    implementation = _debian_archives_impl,
    doc = "The locked .deb files of a group as they are, in the filegroup `debs`.",
    attrs = {
        "group": attr.string(mandatory = True, doc = "group of the lock"),
    },
)
