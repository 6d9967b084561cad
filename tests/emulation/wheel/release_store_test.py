# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A slim wheel takes its kernels from a published release, over HTTP and over TLS."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiter_attn
import pytest

from python.release import artefacts, documents, publish
from python.release.folder import Folder
from python.release.tests import builds
from tests.emulation.wheel.file_server import served

OBJECTS = [Path(path) for path in os.environ["CODE_OBJECTS"].split()]
TLS = Path(__file__).parent / "tls"
# The digest of each object that the library asks for and gets.
ASK = """
import hashlib, sys
from aiter_attn import _C
for key in sys.argv[1:]:
    print(hashlib.sha256(_C.code_object(key)).hexdigest())
"""


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    text = Path(aiter_attn.__file__).with_name("manifest.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.fixture(scope="module")
def digests(manifest: dict[str, Any]) -> dict[str, str]:
    """Key -> sha256 of all kernels of the wheel."""
    return {
        made["key"]: made["sha256"]
        for instance in manifest["instances"]
        for made in instance["code_objects"].values()
    }


@pytest.fixture(scope="module")
def published(manifest: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a release of the build's code objects."""
    listed = [{"file": str(path), "kind": "code_object"} for path in OBJECTS]
    files = artefacts.code_objects(listed, Path(), manifest)
    settings = {name: manifest[name] for name in ("archs", "variant_set")}
    settings |= {"namespace": "aiter", "on_demand": "none", "patches": "default"}
    built = artefacts.Artefacts("0.1.0", settings, manifest, files)
    release = documents.release(built, builds.COMMIT, files)
    root = tmp_path_factory.mktemp("published")
    publish.publish(release, Folder(root), lambda text: None)
    return root


def asked(url: str, cache: Path, *keys: str, **environment: str) -> tuple[list[str], str]:
    """The digests of objects that a process gets, and what it said about those that it does not."""
    path = os.pathsep.join([str(Path(aiter_attn.__file__).parents[1]), *sys.path])
    settings = {"AITER_ATTN_STORE": url, "AITER_ATTN_CACHE_DIR": str(cache), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", ASK, *keys],
        env={**os.environ, **settings, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.split(), done.stderr


def test_all_kernels_come_from_the_release(
    published: Path, digests: dict[str, str], tmp_path: Path
) -> None:
    with served(published, tls=False) as url:
        got, said = asked(url, tmp_path, *digests)
    assert got == list(digests.values()), said
    # The cache has them when the server is gone.
    got, said = asked(url, tmp_path, *digests)
    assert got == list(digests.values()), said


def test_a_certificate_that_the_user_trusts_counts_as_for_curl(
    published: Path, digests: dict[str, str], tmp_path: Path
) -> None:
    key, digest = next(iter(digests.items()))
    with served(published, tls=True) as url:
        for number, name in enumerate(("SSL_CERT_FILE", "CURL_CA_BUNDLE")):
            trusted = {name: str(TLS / "cert.pem")}
            assert asked(url, tmp_path / str(number), key, **trusted) == ([digest], "")
        got, said = asked(url, tmp_path / "distrusted", key)
    assert not got
    assert f"cannot be had from {url}/cas/{digest}: " in said
    assert "certificate" in said


def test_other_bytes_in_its_place_are_refused(
    published: Path, digests: dict[str, str], tmp_path: Path
) -> None:
    key, digest = next(iter(digests.items()))
    changed = tmp_path / "changed/cas" / digest
    changed.parent.mkdir(parents=True)
    data = bytearray((published / "cas" / digest).read_bytes())
    data[len(data) // 2] ^= 1
    changed.write_bytes(data)
    with served(tmp_path / "changed", tls=False) as url:
        got, said = asked(url, tmp_path / "cache", key)
    assert not got
    assert f"has sha256 {hashlib.sha256(data).hexdigest()} instead of {digest}" in said


def test_a_prebuild_says_how_many_kernels_the_release_has(
    published: Path, digests: dict[str, str], tmp_path: Path
) -> None:
    lacked = aiter_attn.kernels()[0]
    root = tmp_path / "lacking"
    shutil.copytree(published, root)
    (root / "cas" / digests[lacked["key"]]).unlink()
    variant_set = json.loads(Path(aiter_attn.__file__).with_name("manifest.json").read_text())[
        "variant_set"
    ]
    path = os.pathsep.join([str(Path(aiter_attn.__file__).parents[1]), *sys.path])
    with served(root, tls=False) as url:
        settings = {"AITER_ATTN_STORE": url, "AITER_ATTN_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, "-m", "aiter_attn", "prebuild", "build", variant_set],
            env={**os.environ, **settings, "PYTHONPATH": path},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    count, server = len(digests), f"the store '{url}'"
    named = f"{lacked['arch']} {lacked['name']}"
    assert done.returncode == 1
    assert f"1 of {count} could not be fetched; {count} kernels: {count - 1} are there, 1 " in (
        done.stdout
    )
    assert " not there after " in done.stdout
    assert f"{count} kernels: {count - 1} fetched from {server}, 1 missing\n" in done.stdout
    (told,) = [line for line in done.stderr.splitlines() if line.startswith(named)]
    assert f"{server}: does not have it" in told
