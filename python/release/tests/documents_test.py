# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The documents of a release: true, complete, and the same bytes for the same commit."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from pathlib import Path

import pytest

from python.release import documents, provenance
from python.release.errors import ReleaseError
from python.release.tests import builds


def document(release: documents.Release, name: str) -> dict:
    (file,) = (file for file in release.files if file.name == name)
    assert isinstance(file.contents, bytes)
    return json.loads(file.contents)


def test_the_same_commit_gives_the_same_bytes(tmp_path: Path) -> None:
    one, two = builds.release(tmp_path / "a"), builds.release(tmp_path / "elsewhere" / "b")
    assert one.document == two.document
    assert one.page == two.page
    assert one.entry == two.entry
    assert [f.sha256 for f in one.files] == [f.sha256 for f in two.files]


def test_nothing_tells_where_it_was_made(tmp_path: Path) -> None:
    release = builds.release(tmp_path / "secret-place")
    made = [file.contents for file in release.files if isinstance(file.contents, bytes)]
    assert len(made) == 2
    for data in (*made, release.document, release.page):
        assert b"secret-place" not in data


def test_the_document_lists_every_file(tmp_path: Path) -> None:
    release = builds.release(tmp_path)
    data = json.loads(release.document)
    assert data["commit"] == builds.COMMIT.sha
    assert data["time"] == "2023-11-14T22:13:20+00:00"
    assert data["version"] == "0.1.0"
    assert data["settings"]["variant_set"] == "smoke"
    kinds = sorted(file["kind"] for file in data["files"])
    wheels = ["kernels_wheel", "pure_wheel", *["slim_wheel"] * 3, *["wheel"] * 3]
    others = ["archive", "kernel_pack", "manifest", "provenance", "sbom", *["code_object"] * 2]
    assert kinds == sorted([*others, *wheels, "te_prebuilt", "te_prebuilt_digest"])
    (pack,) = (file for file in data["files"] if file["kind"] == "kernel_pack")
    assert pack["code_objects"] == sorted(builds.keys("kernels"))
    assert release.entry["key"] == hashlib.sha256(release.document).hexdigest()


def test_the_page_leads_pip_to_the_wheels(tmp_path: Path) -> None:
    release = builds.release(tmp_path)
    links = re.findall(
        r'<a href="\.\./\.\./([^#"]+)#sha256=(\w+)">([^<]+)</a>', release.page.decode()
    )
    kinds = ("wheel", "pure_wheel")
    wheels = {(f.path, f.sha256, f.name) for f in release.files if f.kind in kinds}
    assert set(links) == wheels
    assert len(wheels) == len(builds.ABIS) + 1


def test_the_statement_is_over_all_that_was_built(tmp_path: Path) -> None:
    release = builds.release(tmp_path)
    statement = document(release, provenance.NAME)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    subjects = sorted(s["digest"]["sha256"] for s in statement["subject"])
    others = sorted(f.sha256 for f in release.files if f.name != provenance.NAME)
    assert subjects == others
    assert len({s["name"] for s in statement["subject"]}) == len(others)
    definition = statement["predicate"]["buildDefinition"]
    source, *materials = definition["resolvedDependencies"]
    assert source["digest"] == {"gitCommit": builds.COMMIT.sha}
    assert {m["digest"]["sha256"] for m in materials} == {m.sha256 for m in builds.MATERIALS}
    assert definition["externalParameters"]["settings"]["namespace"] == "aiter"
    assert "modified" not in definition["externalParameters"]
    assert statement["predicate"]["runDetails"] == {"builder": {"id": "urn:x:builder"}}


def test_modified_files_are_told_of(tmp_path: Path) -> None:
    dirty = dataclasses.replace(builds.COMMIT, modified=("README.md",))
    release = builds.release(tmp_path, dirty)
    definition = document(release, provenance.NAME)["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["modified"] == ["README.md"]
    assert json.loads(release.document)["modified"] is True
    assert release.entry["modified"] is True


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("attn", ("--builder=attn", "want a URI")),
        ("https://user:s3cret@ci.example/x", ("ci.example", "credentials")),
    ],
)
def test_uris_that_must_not_be_published(uri: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ReleaseError) as error:
        provenance.check_uri("builder", uri)
    for word in words:
        assert word in str(error.value)
    assert "s3cret" not in str(error.value)


def test_good_uris() -> None:
    for uri in (provenance.LOCAL_BUILDER, "git+https://host.example/attn", "urn:x:y"):
        provenance.check_uri("builder", uri)
