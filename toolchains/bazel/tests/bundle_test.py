# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Contents that are written into a bundle: run paths, class path, rc file, trust store."""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import struct

import pytest

from toolchains.bazel import bundle, truststore

FINAL = "/home/u/.cache/bazelw/bazel-1"


def test_run_path_prefers_neighbours_then_the_bundle() -> None:
    assert bundle.run_path(FINAL).split(":") == [
        "$ORIGIN",
        "$ORIGIN/..",
        "$ORIGIN/../lib",
        f"{FINAL}/usr/lib/x86_64-linux-gnu",
    ]


def test_class_path_names_what_is_there_once() -> None:
    listed = "/usr/share/java/a.jar\n\n/usr/share/java/gone.jar\n/usr/share/java/b.jar\n"
    present = {"/usr/share/java/a.jar", "/usr/share/java/b.jar", "/usr/share/java/c.jar"}
    text = bundle.class_path(listed, ["c", "a", "absent"], FINAL, present)
    assert text.splitlines() == [
        f"{FINAL}/usr/share/bazel/label",
        f"{FINAL}/usr/share/java/a.jar",
        f"{FINAL}/usr/share/java/b.jar",
        f"{FINAL}/usr/share/java/c.jar",
    ]


def test_rc_file_holds_nothing_that_enters_an_action() -> None:
    lines = bundle.rc_text(FINAL, "usr/lib/jvm/java", has_trust_store=True).splitlines()
    assert f"startup --server_javabase={FINAL}/usr/lib/jvm/java" in lines
    assert f"common --registry=file://{FINAL}/registry" in lines
    commands = {line.split()[0] for line in lines}
    assert commands == {"startup", "common"}
    options = {line.split()[1].split("=")[0] for line in lines if line.startswith("common")}
    assert options == {"--registry", "--lockfile_mode", "--check_direct_dependencies"}
    assert "trustStore" not in bundle.rc_text(FINAL, "j", has_trust_store=False)


def _entries(store: bytes) -> list[bytes]:
    """Reads a JKS key store of trusted certificates, checking its digest."""
    secret = "changeit".encode("utf-16-be") + b"Mighty Aphrodite"
    assert store[-20:] == hashlib.sha1(secret + store[:-20]).digest()
    magic, version, count = struct.unpack_from(">III", store)
    assert (magic, version) == (0xFEEDFEED, 2)
    at, certificates = 12, []
    for number in range(count):
        (tag,) = struct.unpack_from(">I", store, at)
        assert tag == 2
        at += 4
        for expected in (f"ca{number}", None, "X.509"):
            if expected is None:
                at += 8
                continue
            (length,) = struct.unpack_from(">H", store, at)
            assert store[at + 2 : at + 2 + length].decode() == expected
            at += 2 + length
        (length,) = struct.unpack_from(">I", store, at)
        certificates.append(store[at + 4 : at + 4 + length])
        at += 4 + length
    assert at == len(store) - 20
    return certificates


def pem(*certificates: bytes) -> str:
    return "".join(
        "# a comment\n-----BEGIN CERTIFICATE-----\n"
        f"{base64.encodebytes(c).decode()}-----END CERTIFICATE-----\n"
        for c in certificates
    )


def test_trust_store_holds_every_certificate() -> None:
    certificates = [b"first" * 40, b"second"]
    assert _entries(truststore.from_pem(pem(*certificates))) == certificates
    assert _entries(truststore.from_pem("")) == []


def test_trust_store_follows_the_machine(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorities = tmp_path / "ca.crt"
    monkeypatch.setattr(truststore, "CA_BUNDLE", str(authorities))
    assert not truststore.refresh(str(tmp_path))
    authorities.write_text(pem(b"one"))
    assert truststore.refresh(str(tmp_path))
    store = tmp_path / truststore.FILE
    assert _entries(store.read_bytes()) == [b"one"]
    before = store.stat().st_ino
    assert truststore.refresh(str(tmp_path))
    assert store.stat().st_ino == before
    authorities.write_text(pem(b"one", b"two"))
    os.utime(authorities, (1, 1))
    assert truststore.refresh(str(tmp_path))
    assert _entries(store.read_bytes()) == [b"one", b"two"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ca.crt", truststore.FILE]
