# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Bazel's outputs, read and checked: files that are missing, or not of one build."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from python.release import artefacts
from python.release.errors import ReleaseError
from python.release.tests import builds


def change(listed: Path, **fields: object) -> None:
    listed.write_text(json.dumps(json.loads(listed.read_text()) | fields))


def refused(listed: Path) -> str:
    with pytest.raises(ReleaseError) as error:
        artefacts.read(listed, listed.parent)
    return str(error.value)


def test_what_is_read(tmp_path: Path) -> None:
    found = artefacts.read(builds.build(tmp_path), tmp_path)
    assert found.version == "0.1.0"
    assert found.settings == {
        "archs": ["gfx942"],
        "namespace": "aiter",
        "on_demand": "none",
        "patches": "default",
        "variant_set": "smoke",
    }
    kinds = [file.kind for file in found.files]
    wheels = ["wheel", "slim_wheel"] * 3 + ["kernels_wheel"]
    others = ["te_prebuilt", "manifest", "kernel_pack", "archive", "te_prebuilt_digest"]
    assert kinds == [*wheels, "pure_wheel", *others, "code_object", "code_object"]
    (pack,) = (file for file in found.files if file.kind == "kernel_pack")
    assert pack.about == {"code_objects": sorted(builds.keys("kernels"))}
    assert pack.name == "kernels.pack"
    for kind in ("wheel", "slim_wheel"):
        its = [file for file in found.files if file.kind == kind]
        assert [file.about["abi"] for file in its] == list(builds.ABIS)
        assert {file.about["requires_python"] for file in its} == {">=3.10"}


def test_code_objects_lie_where_libraries_ask_for_them(tmp_path: Path) -> None:
    found = artefacts.read(builds.build(tmp_path), tmp_path)
    listed = {file.path: file for file in found.files if file.kind == "code_object"}
    for key in builds.keys("kernels"):
        data = builds.code_object(key)
        object_ = listed.pop(f"cas/{hashlib.sha256(data).hexdigest()}")
        assert object_.about == {"keys": [key]}
        assert Path(object_.contents).read_bytes() == data
    assert not listed


def test_a_prebuilt_and_its_digest_have_one_folder(tmp_path: Path) -> None:
    found = artefacts.read(builds.build(tmp_path), tmp_path)
    (archive,) = (file for file in found.files if file.kind == "te_prebuilt")
    (digest,) = (file for file in found.files if file.kind == "te_prebuilt_digest")
    assert archive.path == f"files/{archive.sha256}/{builds.PREBUILT}"
    assert digest.path == f"{archive.path}.sha256"


def test_a_digest_of_another_prebuilt(tmp_path: Path) -> None:
    listed = builds.build(tmp_path)
    (tmp_path / builds.PREBUILT).write_bytes(b"another")
    message = refused(listed)
    assert f"{builds.PREBUILT}.sha256 is " in message
    assert f"which is not the sha256 of {builds.PREBUILT}" in message


def test_code_objects_of_two_builds(tmp_path: Path) -> None:
    listed = builds.build(tmp_path)
    first, second = (tmp_path / f"{key}.hsaco" for key in builds.keys("kernels"))
    first.write_bytes(b"another")
    message = refused(listed)
    assert first.name in message and "two builds" in message
    first.write_bytes(second.read_bytes())
    digest = hashlib.sha256(builds.code_object(first.stem)).hexdigest()
    assert f"no code object has the sha256 {digest}, which manifest.json names" in refused(listed)


@pytest.mark.parametrize("name", [builds.wheel_name("cp313"), "libaiter_attn.a"])
def test_a_missing_file(tmp_path: Path, name: str) -> None:
    listed = builds.build(tmp_path)
    (tmp_path / name).unlink()
    message = refused(listed)
    assert name in message
    assert "./bazelw build //:release" in message


def test_a_missing_wheel(tmp_path: Path) -> None:
    listed = builds.build(tmp_path)
    files = json.loads(listed.read_text())["files"]
    change(listed, files=[f for f in files if f.get("abi") != "cp314"])
    message = refused(listed)
    assert "the kind wheel for cp311, cp313;" in message
    assert "cp311, cp313, cp314" in message


@pytest.mark.parametrize(
    "manifest",
    [builds.manifest("others"), builds.manifest(norms="others")],
    ids=["attention", "norms"],
)
def test_a_wheel_of_other_kernels(tmp_path: Path, manifest: str) -> None:
    listed = builds.build(tmp_path)
    builds.write_wheel(tmp_path / builds.wheel_name("cp313"), manifest)
    message = refused(listed)
    assert builds.wheel_name("cp313") in message
    assert "two builds" in message


def test_a_pack_of_other_kernels(tmp_path: Path) -> None:
    listed = builds.build(tmp_path)
    (tmp_path / "embedded_pack.pack").write_bytes(b"PACK" + bytes.fromhex(builds.keys("others")[0]))
    assert "embedded_pack.pack has other code objects" in refused(listed)


def test_a_wheel_of_other_packed_kernels(tmp_path: Path) -> None:
    listed = builds.build(tmp_path)
    builds.write_kernels_wheel(tmp_path / builds.KERNELS_WHEEL, builds.pack("others"))
    assert f"{builds.KERNELS_WHEEL} has other code objects" in refused(listed)


@pytest.mark.parametrize("contents", [b"", b"PK\x03\x04 cut off", b"<html>"])
@pytest.mark.parametrize(
    "name", [builds.wheel_name("cp311"), builds.KERNELS_WHEEL, builds.PURE_WHEEL]
)
def test_a_wheel_that_is_none(tmp_path: Path, name: str, contents: bytes) -> None:
    listed = builds.build(tmp_path)
    (tmp_path / name).write_bytes(contents)
    assert "is no wheel of this project" in refused(listed)


def test_what_is_not_locked_is_not_released(tmp_path: Path) -> None:
    listed = builds.build(tmp_path)
    drifted = builds.manifest(not_locked=("libdlpack-dev 9.9-1",))
    builds.write_wheel(tmp_path / builds.wheel_name("cp313"), drifted)
    message = refused(listed)
    assert "libdlpack-dev 9.9-1" in message
    assert "--relock" in message
    (tmp_path / "manifest.json").write_text(drifted)
    assert "libdlpack-dev 9.9-1" in refused(listed)
