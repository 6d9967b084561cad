# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A repository rule for trees of locked Debian packages."""

load("//toolchains/debian/private:fetch.bzl", "archive_path", "fetch_group")
load("//toolchains/debian/private:sha256.bzl", "sha256_hex")

_PATTERN_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-/*?[]@%="

def _patterns(values, attribute):
    for value in values:
        bad = [c for c in value.elems() if c not in _PATTERN_CHARACTERS]
        if bad or not value:
            fail("%s: pattern %r holds %s; allowed are %s" %
                 (attribute, value, bad or "nothing", _PATTERN_CHARACTERS))
    return "|".join(values)

def debian_tree(rctx, lock, group, packages = [], keep = [], exclude = [], strip_prefix = ""):
    """Downloads and unpacks locked packages into the repository that rctx makes.

    For repository rules that do more than debian_packages. Besides the tree it writes
    debian_lock.json (the entries unpacked) and lock_digest.bzl (LOCK_DIGEST, a sha256 over
    their names and sha256s: the tree's identity).

    Args:
      rctx: the repository context.
      lock: label of the lock.
      group: the lock's group.
      packages: names of the packages wanted; all of the group's when empty.
      keep: shell patterns on paths like "usr/bin/clang", where "*" also matches "/"; files
        that match none are removed. Empty: all are kept.
      exclude: patterns of files that are removed, even if they match `keep`.
      strip_prefix: folder whose contents alone are unpacked, to the root; `keep` and `exclude`
        then apply to paths below it.

    Returns:
      LOCK_DIGEST.
    """
    kept, excluded = _patterns(keep, "keep"), _patterns(exclude, "exclude")
    entries = fetch_group(rctx, lock, group, packages)
    for entry in entries:
        rctx.report_progress("unpacking " + entry["name"])
        rctx.extract(archive_path(entry), ".deb")
        members = [p for p in rctx.path(".deb").readdir() if p.basename.startswith("data.tar")]
        if len(members) != 1:
            fail("%s: not a Debian package: it has no data.tar" % entry["path"])
        rctx.extract(members[0], "", strip_prefix)
        rctx.delete(".deb")
    rctx.delete("debs")
    script = rctx.path(Label("//toolchains/debian/private:unpack.sh"))
    got = rctx.execute(["sh", script, kept, excluded], timeout = 600)
    if got.return_code:
        fail("cannot tidy the unpacked tree of group %s: %s" % (group, got.stderr))
    digest = sha256_hex("".join(["%s %s\n" % (e["name"], e["sha256"]) for e in entries]))
    rctx.file("debian_lock.json", json.encode_indent(entries, indent = " ") + "\n")
    rctx.file("lock_digest.bzl", "LOCK_DIGEST = \"%s\"\n" % digest)
    return digest

def _debian_packages_impl(rctx):
    attr = rctx.attr
    if attr.build_file and attr.build_file_content:
        fail("debian_packages %s: set one of build_file and build_file_content" % rctx.name)
    debian_tree(
        rctx,
        attr.lock,
        attr.group,
        attr.packages,
        attr.keep,
        attr.exclude,
        attr.strip_prefix,
    )
    for label, path in attr.files.items():
        rctx.file(path, rctx.read(label), executable = True)
    content = rctx.read(attr.build_file) if attr.build_file else attr.build_file_content
    if content:
        rctx.file("BUILD.bazel", content, executable = False)
    rctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % rctx.name, executable = False)

debian_packages = repository_rule(
    implementation = _debian_packages_impl,
    doc = """A tree of locked Debian packages: the unpacked files, the given BUILD file,
`lock_digest.bzl` with LOCK_DIGEST (identity of the tree) and `debian_lock.json`.

The archives are those of AITER_ATTN_DEBIAN_MIRROR (by --repo_env too), else those that the
machine's apt is configured with.""",
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
        "keep": attr.string_list(
            doc = "shell patterns on paths like usr/bin/clang, \"*\" also matches \"/\"; " +
                  "files that match none are removed; empty: all are kept",
        ),
        "lock": attr.label(
            default = "//toolchains/debian:lock.json",
            allow_single_file = True,
            doc = "written by `./bazelw --relock debian` from packages.toml",
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
    fetch_group(rctx, rctx.attr.lock, rctx.attr.group)
    rctx.file("BUILD.bazel", """filegroup(
    name = "debs",
    srcs = glob(["debs/*.deb"]),
    visibility = ["//visibility:public"],
)
""", executable = False)
    rctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % rctx.name, executable = False)

debian_archives = repository_rule(
    implementation = _debian_archives_impl,
    doc = "The locked .deb files of a group as they are, in the filegroup `debs`.",
    attrs = {
        "group": attr.string(mandatory = True, doc = "group of the lock"),
        "lock": attr.label(
            default = "//toolchains/debian:lock.json",
            allow_single_file = True,
        ),
    },
)
