# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Makes a release of Bazel's outputs and of the checkout's documents."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from python.release import artefacts, documents, provenance
from python.release.checkout import Commit
from toolchains.sbom import document as sbom
from toolchains.sbom.contents import Contents
from toolchains.sbom.materials import Material


def make(
    listed: Path,
    root: Path,
    commit: Commit,
    materials: Iterable[Material],
    contents: Contents,
    builder: str = provenance.LOCAL_BUILDER,
    source: str | None = None,
) -> documents.Release:
    """A release with SBOM and provenance: the same bytes for the same checkout.

    listed  what artefacts.bzl writes; its files are below root
    """
    built = artefacts.read(listed, root)
    materials = sorted(set(materials))
    text = sbom.write(built.version, materials, contents, commit.date())
    files = (*built.files, artefacts.file("sbom", sbom.NAME, text.encode()))
    statement = provenance.write(files, commit, built.settings, materials, builder, source)
    files += (artefacts.file("provenance", provenance.NAME, statement.encode()),)
    return documents.release(built, commit, files)
