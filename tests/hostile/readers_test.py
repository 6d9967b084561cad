# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Files that the build reads: any bytes are a value, or an error of the reader's own kind."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gfxemu.code_object import parse as parse_code_object
from gfxemu.errors import CodeObjectError
from hypothesis import strategies as st

from kernels.ck_fmha.ckgen.schema import parse_variant_set
from kernels.ck_fmha.ckgen.selection import select
from kernels.code_object.metadata import MetadataError, kernel_record
from kernels.code_object.spec import CodeObjectSpec
from kernels.launch_table.traits import TABLE
from kernels.variants.values import VariantSetError
from python.private import elf
from tests.hostile.documents import (
    broken_bytes,
    canonical_json,
    json_texts,
    toml,
    toml_texts,
)
from tests.hostile.explore import Counts, explore, parts
from toolchains.bazel import registry
from toolchains.debian import lock as debian_lock
from toolchains.debian import resolve
from toolchains.locks.errors import LocksError
from toolchains.npm import fetch as npm
from toolchains.pypi import fetch as pypi
from toolchains.pypi import relock as pypi_relock

_DIGEST = "0" * 64


class _Candidate:
    """An instance as a variant set's selectors see it."""

    def __init__(self, direction: str, number: int) -> None:
        self.direction = direction
        self.traits = {
            name: _KNOWN[name][number % len(_KNOWN[name])] for name in TABLE.of_direction(direction)
        }


_KNOWN: dict[str, list[Any]] = {
    name: [32, 64, 128] if trait.is_size else list(trait.values)
    for name, trait in TABLE.traits.items()
}
_CANDIDATES = [_Candidate(direction, i) for direction in TABLE.directions for i in range(12)]


def _variant_set(text: str) -> None:
    select(parse_variant_set(text, "kernels/variants/odd.toml", _KNOWN), _CANDIDATES)


def _spec(text: str) -> None:
    spec = CodeObjectSpec.parse(text.encode())
    assert spec.canonical() == text.encode()


def _locked(module: Any, holder: Any, text: str) -> None:
    """Has a module read its lock; the name of that file is holder.LOCK."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "lock.json"
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        patch.setattr(holder, "LOCK", path)
        module.locked()


_VARIANT_SET = {
    "variants": [
        {"direction": "fwd", "dtype": "bf16"},
        {"direction": ["bwd"], "head_size_qk": [64, 128]},
    ],
    "mha_fwd_variants": [{"has_bias": False, "has_alibi": [True, False], "receipt": 600}],
}
_DEBIAN_LOCK = {
    "regenerate": "./bazelw --relock debian",
    "groups": {
        "rocm": {
            "suite": "forky",
            "packages": [
                {
                    "name": "hipcc",
                    "version": "7.1-1",
                    "path": "pool/main/h/hipcc_7.1-1_amd64.deb",
                    "sha256": _DIGEST,
                    "size": 7,
                    "time": "20260101T000000Z",
                }
            ],
        }
    },
}
_PYPI_LOCK = {
    "regenerate": "./bazelw --relock pypi",
    "distributions": {
        "numpy": {
            "version": "2.4.6",
            "files": {"cp311": {"filename": "numpy.whl", "sha256": _DIGEST}},
        }
    },
}
_NPM_LOCK = {"packages": {"@scope/name": {"version": "1.0", "sha256": _DIGEST}}}
_REQUIREMENTS = {"distribution": {"numpy": {"version": "2.4.6", "files": ["abis"]}}}
_GROUPS = {
    "group": {
        "python{python}": {
            "suite": "{suite}",
            "packages": ["python{version}"],
            "closure": ["lib*"],
            "exclude": ["libc6"],
        },
        "llvm": {"suite": "forky", "packages": ["clang-{clang}"], "closure": True},
    }
}
_OFFLINE = {
    "extra_jars": ["a.jar"],
    "module": {"rules_cc": {"version": "0.1", "path": "rules_cc", "older": ["0.0.9"]}},
    "stub": {"buildozer": ["7"]},
}
_SPEC = {
    "arch": "gfx942",
    "flags": ["-O3"],
    "format": 1,
    "headers": _DIGEST,
    "source": _DIGEST,
    "toolchain": _DIGEST,
}


@dataclasses.dataclass(frozen=True)
class Reader:
    """read takes a text, and raises error alone; document is one that it takes."""

    read: Callable[[str], Any]
    error: type[Exception]
    document: dict[str, Any]
    is_toml: bool = False

    @property
    def text(self) -> str:
        return (toml if self.is_toml else canonical_json)(self.document)

    @property
    def texts(self) -> st.SearchStrategy[str]:
        return (toml_texts if self.is_toml else json_texts)(self.document)


_READERS = {
    "variant_set_file": Reader(_variant_set, VariantSetError, _VARIANT_SET, is_toml=True),
    "code_object_spec": Reader(_spec, ValueError, _SPEC),
    "debian_lock": Reader(lambda t: debian_lock.parse(t, "lock"), LocksError, _DEBIAN_LOCK),
    "debian_groups": Reader(
        lambda t: resolve.parse_groups(t, "packages", {"CLANG": "22"}, {"cp311": "bookworm"}),
        LocksError,
        _GROUPS,
        is_toml=True,
    ),
    "pypi_lock": Reader(lambda t: _locked(pypi, pypi_relock, t), LocksError, _PYPI_LOCK),
    "pypi_requirements": Reader(
        lambda t: pypi_relock.parse_requirements(t, "requirements", ["cp311"]),
        LocksError,
        _REQUIREMENTS,
        is_toml=True,
    ),
    "npm_lock": Reader(lambda t: _locked(npm, npm, t), LocksError, _NPM_LOCK),
    "offline_bazel": Reader(
        lambda t: registry.parse_offline(t, "offline"), LocksError, _OFFLINE, is_toml=True
    ),
}


def _judge(
    name: str, read: Callable[[Any], Any], error: type[Exception]
) -> Callable[[Any, Counts], None]:
    def check(data: Any, counts: Counts) -> None:
        try:
            read(data)
            counts[f"{name}: read"] += 1
        except error as refused:
            assert str(refused), "refused without a word"
            counts[f"{name}: refused"] += 1

    check.__name__ = name
    return check


@pytest.mark.parametrize("name", _READERS)
def test_a_right_text_is_read(name: str) -> None:
    _READERS[name].read(_READERS[name].text)


@pytest.mark.parametrize("name", _READERS)
def test_nested_without_end_is_refused(name: str) -> None:
    reader = _READERS[name]
    nested = "[" * 100_000
    with pytest.raises(reader.error):
        reader.read(f"variants = {nested}" if reader.is_toml else nested)


@parts()
@pytest.mark.parametrize("name", _READERS)
def test_any_text_is_read_or_refused(
    name: str, part: int, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = _READERS[name]
    counts = explore(_judge(name, reader.read, reader.error), reader.texts, part, capsys)
    assert min(counts[f"{name}: read"], counts[f"{name}: refused"]) > 0


def _smallest_code_object() -> Path:
    return min(map(Path, os.environ["CODE_OBJECTS"].split()), key=lambda path: path.stat().st_size)


def _code_object(data: bytes) -> None:
    symbol = _smallest_code_object().name.removesuffix(".gfx942.hsaco")
    kernel_record(data, symbol, "gfx942", 64 if "dot_do_o" in symbol else 256)


@parts()
@pytest.mark.parametrize(
    ("name", "read", "error"),
    [
        ("code_object", _code_object, MetadataError),
        ("emulated_code_object", parse_code_object, CodeObjectError),
        ("shared_object", elf.read, elf.ElfError),
    ],
)
def test_any_bytes_are_read_or_refused(
    name: str,
    read: Callable[[bytes], Any],
    error: type[Exception],
    part: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = _smallest_code_object().read_bytes()
    explore(_judge(name, read, error), broken_bytes(data), part, capsys)
