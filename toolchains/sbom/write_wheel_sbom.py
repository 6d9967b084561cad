# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the SBOM that lies in the wheel; sbom.bzl runs this.

Of Debian packages it has those that the build's trees were really made of, which are the locked
ones or what the manifest's `not_locked` names. Of Python distributions it has what is in the wheel;
of Python headers that are the machine's, their version and digest. That of another product has all
that it is made of: the packages of the trees, and the distributions that are named.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from toolchains.sbom import contents, document, materials

OUT = flags.DEFINE_string("out", None, "the SBOM", required=True)
VERSION = flags.DEFINE_string("wheel_version", None, "of the wheel", required=True)
CONTENTS = flags.DEFINE_string("contents", None, "contents.toml", required=True)
COPYRIGHTS = flags.DEFINE_string("copyrights", None, "copyrights.json", required=True)
PYPI_LOCK = flags.DEFINE_string("pypi_lock", None, "the lock of distributions", required=True)
PRODUCT = flags.DEFINE_string("product", None, "another one than the wheel of the library")
DISTRIBUTIONS = flags.DEFINE_multi_string("distribution", [], "a Python distribution in it")
HEADERS = flags.DEFINE_string("machine_headers", None, "headers.json of the machine's Python")
TREES = flags.DEFINE_multi_string("tree", [], "debian_lock.json of a tree")


def make(
    version: str,
    known: contents.Contents,
    pypi_lock: str,
    trees: Sequence[str],
    product: str | None = None,
    inside: Sequence[str] = (),
    machine_headers: str | None = None,
) -> str:
    """The SBOM's text, from the texts of the lock, of the trees' lists and of headers.json. inside:
    distributions that another product than the wheel of the library has; ValueError: the lock has
    no such."""
    distributions = materials.of_pypi_lock(json.loads(pypi_lock))
    if product is None:
        used = {m for m in distributions if known.is_in_wheel(m)}
    else:
        used = {m for m in distributions if m.name in inside}
        if missing := set(inside) - {m.name for m in used}:
            raise ValueError(f"not in the lock of distributions: {', '.join(sorted(missing))}")
    for tree in trees:
        used |= materials.of_debian(json.loads(tree))
    if machine_headers is not None:
        used.add(materials.of_machine(json.loads(machine_headers)))
    if product is None:
        return document.write(version, used, known)
    return document.write(version, used, known, product=product)


def main(argv: Sequence[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}; there are only options")
    trees = [Path(tree).read_text(encoding="utf-8") for tree in TREES.value]
    lock = Path(PYPI_LOCK.value).read_text(encoding="utf-8")
    known = contents.read(Path(CONTENTS.value), Path(COPYRIGHTS.value))
    headers = Path(HEADERS.value).read_text(encoding="utf-8") if HEADERS.value else None
    text = make(VERSION.value, known, lock, trees, PRODUCT.value, DISTRIBUTIONS.value, headers)
    Path(OUT.value).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    app.run(main)
