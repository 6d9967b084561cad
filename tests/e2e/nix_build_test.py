# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Nix builds the wheel from files that it fetched itself, and the wheel passes its self-test."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import differences
from tests.e2e.nixos import NixOS
from toolchains.locks import store
from toolchains.pypi import fetch


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NixOS]:
    made = NixOS(tmp_path_factory.mktemp("nix"))
    for distribution in ("ml-dtypes", "numpy"):
        wheel = store.Store(os.environ).path(fetch.fetch(distribution, "cp313"))
        zipfile.ZipFile(wheel).extractall(made.site_packages)
    yield made
    made.close()


def test_the_wheel_has_the_bytes_that_bazel_alone_gives(machine: NixOS) -> None:
    machine.nix("build", *machine.STUB, "--print-build-logs", "--no-link", ".#smoke")
    (wheel,) = (machine.base / "nix/store").glob("*-aiter-attn-smoke-*/*.whl")
    reference = Path(os.environ["REFERENCE_WHEEL"]).resolve()
    assert wheel.name == reference.name
    found = differences.of_wheels(reference, wheel)
    assert not found, "\n".join(found)


def test_the_checks_of_the_flake_pass(machine: NixOS) -> None:
    machine.nix("flake", "check", *machine.STUB, "--print-build-logs")
    (said,) = (machine.base / "nix/store").glob("*-aiter-attn-selftest-smoke")
    assert re.search(r"^[1-9]\d* passed, 0 failed", said.read_text(), re.M)
