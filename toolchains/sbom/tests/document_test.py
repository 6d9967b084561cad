# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The SBOM: valid by its specification's own schema, true, and the same for the same locks."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest
from cyclonedx.validation.json import JsonStrictValidator

from toolchains.sbom import contents, document, materials, write_wheel_sbom
from toolchains.sbom.materials import Material

LOCKS = {source: Path(f"toolchains/{source}/lock.json") for source in ("debian", "pypi", "npm")}
KNOWN = contents.read(
    Path("toolchains/sbom/contents.toml"), Path("toolchains/sbom/copyrights.json")
)
WHEN = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
COMPILER = Material("debian", "clang-22", "1:22.1.8-1", "a" * 64)


def sbom(*chosen: Material, time: datetime.datetime | None = None) -> dict:
    return json.loads(document.write("0.1.0", chosen, KNOWN, time))


@pytest.fixture(scope="module")
def locked() -> list[Material]:
    return sorted(materials.of_locks(LOCKS["debian"], LOCKS["pypi"], LOCKS["npm"]))


@pytest.fixture(scope="module")
def trees() -> list[str]:
    groups = json.loads(LOCKS["debian"].read_text())["groups"]
    names = ("llvm", "rocm", "sysroot", "dlpack", "python311", "python313")
    return [json.dumps(groups[name]["packages"]) for name in names]


def test_it_is_valid(locked: list[Material], trees: list[str]) -> None:
    wheel = write_wheel_sbom.make("0.1.0", KNOWN, LOCKS["pypi"].read_text(), trees)
    for text in (document.write("0.1.0", locked, KNOWN, WHEN), wheel):
        error = JsonStrictValidator(document.VERSION).validate_str(text)
        assert error is None, error


def test_the_validator_would_notice(locked: list[Material]) -> None:
    broken = sbom(COMPILER)
    broken["components"][0]["hashes"][0]["content"] = "not a digest"
    assert JsonStrictValidator(document.VERSION).validate_str(json.dumps(broken)) is not None


def test_it_has_every_locked_file(locked: list[Material]) -> None:
    components = json.loads(document.write("0.1.0", locked, KNOWN))["components"]
    listed = {(c["name"], c["version"], c["hashes"][0]["content"]) for c in components}
    debian = json.loads(LOCKS["debian"].read_text())["groups"].values()
    pypi = json.loads(LOCKS["pypi"].read_text())["distributions"]
    npm = json.loads(LOCKS["npm"].read_text())["packages"]
    wanted = {(p["name"], p["version"], p["sha256"]) for g in debian for p in g["packages"]}
    wanted |= {
        (name.partition("@")[0], entry["version"], file["sha256"])
        for name, entry in pypi.items()
        for file in entry["files"].values()
    }
    wanted |= {(name, p["version"], p["sha256"]) for name, p in npm.items()}
    assert listed == wanted
    assert len(components) == len(wanted), "none twice"
    assert len({c["bom-ref"] for c in components}) == len(components)


@pytest.mark.parametrize(
    ("source", "name", "purl"),
    [
        ("debian", "libstdc++6", "pkg:deb/debian/libstdc%2B%2B6@1:2~3"),
        ("pypi", "ml-dtypes", "pkg:pypi/ml-dtypes@1:2~3"),
        ("npm", "@bazel/buildifier", "pkg:npm/%40bazel/buildifier@1:2~3"),
    ],
)
def test_package_urls(source: str, name: str, purl: str) -> None:
    (component,) = sbom(Material(source, name, "1:2~3", "a" * 64))["components"]
    assert component["purl"] == purl
    assert component["name"] == name


def test_scope_and_licence() -> None:
    zstd = Material("pypi", "zstandard", "0.23.0", "b" * 64)
    unknown = Material("debian", "libfoo", "1", "c" * 64)
    components = {c["name"]: c for c in sbom(COMPILER, zstd, unknown)["components"]}
    assert components["zstandard"]["scope"] == "required"
    assert components["clang-22"]["scope"] == "excluded"
    assert components["zstandard"]["licenses"] == [{"license": {"id": "BSD-3-Clause"}}]
    assert components["clang-22"]["licenses"][0]["expression"].endswith("WITH LLVM-exception")
    assert components["libfoo"]["licenses"] == [{"license": {"name": "NOASSERTION"}}]


def test_the_product_depends_on_what_is_inside() -> None:
    zstd = Material("pypi", "zstandard", "0.23.0", "b" * 64)
    bom = sbom(COMPILER, zstd)
    (product,) = (d for d in bom["dependencies"] if d["ref"] == "aiter-attn")
    assert product["dependsOn"] == [f"pkg:pypi/zstandard@0.23.0#{'b' * 16}"]


def test_neither_order_nor_clock_shows(locked: list[Material], trees: list[str]) -> None:
    text = document.write("0.1.0", locked, KNOWN, WHEN)
    assert text == document.write("0.1.0", [*reversed(locked), *locked], KNOWN, WHEN)
    lock = LOCKS["pypi"].read_text()
    wheel = write_wheel_sbom.make("0.1.0", KNOWN, lock, trees)
    assert wheel == write_wheel_sbom.make("0.1.0", KNOWN, lock, trees[::-1])
    assert "timestamp" not in json.loads(wheel)["metadata"]
    assert json.loads(text)["metadata"]["timestamp"] == "2026-01-02T03:04:05+00:00"


def test_another_content_is_another_document() -> None:
    numbers = {
        sbom(COMPILER)["serialNumber"],
        sbom(Material("debian", "clang-22", "1:22.1.8-1", "b" * 64))["serialNumber"],
        sbom(COMPILER, time=WHEN)["serialNumber"],
    }
    assert len(numbers) == 3


def test_headers_of_the_machines_python_are_named(trees: list[str]) -> None:
    headers = {"version": "3.12.1", "sha256": "c" * 64}
    lock = LOCKS["pypi"].read_text()
    text = write_wheel_sbom.make("0.1.0", KNOWN, lock, trees, machine_headers=json.dumps(headers))
    assert JsonStrictValidator(document.VERSION).validate_str(text) is None
    components = {c["name"]: c for c in json.loads(text)["components"]}
    ours = components["python-headers"]
    assert ours["purl"] == "pkg:generic/python-headers@3.12.1"
    assert ours["hashes"] == [{"alg": "SHA-256", "content": "c" * 64}]
    assert ours["licenses"] == [{"license": {"id": "PSF-2.0"}}]
    assert ours["scope"] == "required"
    assert "python-headers" not in write_wheel_sbom.make("0.1.0", KNOWN, lock, trees)


def test_the_wheels_tells_what_was_really_used(trees: list[str]) -> None:
    drifted = json.loads(trees[3])
    drifted[0] |= {"version": "9.9-1", "sha256": "9" * 64}
    text = write_wheel_sbom.make(
        "0.1.0", KNOWN, LOCKS["pypi"].read_text(), [*trees[:3], json.dumps(drifted)]
    )
    components = {c["name"]: c for c in json.loads(text)["components"]}
    assert components["libdlpack-dev"]["version"] == "9.9-1"
    # Of distributions, what is in the wheel.
    pypi = {name for name, c in components.items() if c["purl"].startswith("pkg:pypi/")}
    assert pypi == {"amd-aiter", "pybind11", "pymonocypher", "zstandard"}
    # Composable Kernel, and AITER's objects where there are some.
    assert components["amd-aiter"]["scope"] == "required"
    assert components["amd-aiter"]["licenses"] == [{"license": {"id": "MIT"}}]


def test_the_kits_has_all_that_is_in_it_and_its_licences() -> None:
    groups = json.loads(LOCKS["debian"].read_text())["groups"]
    trees = [groups[name]["packages"] for name in ("llvm", "rocm", "sysroot")]
    text = write_wheel_sbom.make(
        "0.1.0",
        KNOWN,
        LOCKS["pypi"].read_text(),
        [json.dumps(tree) for tree in trees],
        "aiter-attn-compile-kit",
        ["amd-aiter"],
    )
    assert JsonStrictValidator(document.VERSION).validate_str(text) is None
    bom = json.loads(text)
    assert bom["metadata"]["component"]["purl"] == "pkg:pypi/aiter-attn-compile-kit@0.1.0"
    names = {package["name"] for tree in trees for package in tree} | {"amd-aiter"}
    assert {component["name"] for component in bom["components"]} == names
    assert {component["scope"] for component in bom["components"]} == {"required"}
    unknown = [c["name"] for c in bom["components"] if "NOASSERTION" in json.dumps(c["licenses"])]
    assert not unknown, "the kit is given to others: contents.toml needs their licences"
    (depends,) = (d for d in bom["dependencies"] if d["ref"] == "aiter-attn-compile-kit")
    assert len(depends["dependsOn"]) == len(bom["components"])


def test_a_distribution_of_the_kit_must_be_locked() -> None:
    with pytest.raises(ValueError, match="not in the lock of distributions: flash-attn3"):
        write_wheel_sbom.make("1", KNOWN, LOCKS["pypi"].read_text(), [], "kit", ["flash-attn3"])
