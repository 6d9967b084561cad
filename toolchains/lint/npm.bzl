# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A repository rule for one locked file of an npm package.

Which registry: AITER_ATTN_NPM_REGISTRY (by --repo_env too), else what the machine's npm is
configured with, else, where there is no npm, the default that npm itself has, read from its Debian
package.
"""

load("//toolchains/debian:debian.bzl", "debian_tree")

VARIABLE = "AITER_ATTN_NPM_REGISTRY"

def _npm_default(rctx):
    """The default registry of npm, from the definition of its own setting."""
    definitions = "usr/share/nodejs/npm/lib/utils/config/definitions.js"
    debian_tree(rctx, rctx.attr.debian_lock, "npm", keep = [definitions])
    text = rctx.read(definitions)
    rctx.delete("usr")
    setting = text[text.find("define('registry',"):]
    return setting.split("default: '", 1)[1].split("'", 1)[0]

def _registry(rctx):
    url = rctx.getenv(VARIABLE, "")
    if url:
        return url.rstrip("/")
    npm = rctx.which("npm")
    if npm:
        got = rctx.execute([npm, "config", "get", "registry"])
        if got.return_code == 0 and got.stdout.strip().startswith("http"):
            return got.stdout.strip().rstrip("/")
    return _npm_default(rctx).rstrip("/")

def _npm_file_impl(rctx):
    attr = rctx.attr
    url = "%s/%s/-/%s-%s.tgz" % (
        _registry(rctx),
        attr.package,
        attr.package.split("/")[-1],
        attr.version,
    )
    got = rctx.download_and_extract(
        url,
        ".package",
        sha256 = attr.sha256,
        stripPrefix = "package",
        allow_fail = True,
    )
    if not got.success:
        fail(("%s %s cannot be had from %s with the locked sha256 %s; check the network, or set " +
              "%s to a registry's URL") % (attr.package, attr.version, url, attr.sha256, VARIABLE))
    rctx.symlink(".package/" + attr.file, attr.output)
    rctx.file(
        "BUILD.bazel",
        "exports_files([%r])\n" % attr.output,
        executable = False,
    )
    rctx.file("WORKSPACE", "workspace(name = %r)\n" % rctx.name, executable = False)

npm_file = repository_rule(
    implementation = _npm_file_impl,
    doc = "One file of an npm package, which is locked by its version and sha256.",
    attrs = {
        "debian_lock": attr.label(
            default = "//toolchains/debian:lock.json",
            allow_single_file = True,
            doc = "has the group npm",
        ),
        "file": attr.string(mandatory = True, doc = "the file's path in the package"),
        "output": attr.string(mandatory = True, doc = "the name that it gets"),
        "package": attr.string(mandatory = True, doc = "the package's name, with its scope"),
        "sha256": attr.string(mandatory = True, doc = "digest of the package's .tgz"),
        "version": attr.string(mandatory = True, doc = "the package's version"),
    },
)
