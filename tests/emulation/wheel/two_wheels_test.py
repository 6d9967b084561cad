# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Two wheels in one process, of two namespaces and two variant sets: each has its own kernels, and
its extension module takes nothing of the other's, though both are loaded for all to see."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import aiter_attn
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection

from tests.emulation.wheel import problems
from tests.emulation.wheel.problems import CAUSAL, Shape
from tests.emulator.hip.hip import Hip

# The variant set of the one has kernels of packed sequences, and none of plain attention, which
# every set for training has.
_PACKED = Shape(((19, 40), (5, 0), (64, 33)), heads=(4, 2), window=CAUSAL, group=True)
_PLAIN = Shape(((77, 130),), heads=(3, 1), window=CAUSAL)


def _take() -> dict[str, ModuleType]:
    """The modules of a wheel, and the one that has imported them, out of the process."""
    of_a_wheel = (aiter_attn.__name__, problems.__name__)
    return {n: sys.modules.pop(n) for n in list(sys.modules) if n.startswith(of_a_wheel)}


class Wheel:
    """A wheel's modules, which are the process's where it is active."""

    def __init__(self, modules: dict[str, ModuleType]) -> None:
        self._modules = modules
        package = Path(modules[aiter_attn.__name__].__file__ or "").parent
        manifest = json.loads((package / "manifest.json").read_text(encoding="utf-8"))
        self.archs: list[str] = manifest["archs"]
        self.variant_set: str = manifest["variant_set"]
        self.extension = Path(modules[f"{aiter_attn.__name__}._C"].__file__ or "")
        ctypes.CDLL(str(self.extension), ctypes.RTLD_GLOBAL)

    @contextlib.contextmanager
    def active(self) -> Iterator[Any]:
        """problems.py with this wheel's package."""
        sys.modules.update(self._modules)
        try:
            yield self._modules[problems.__name__]
        finally:
            self._modules = _take()

    def run(self, hip: Hip, shape: Shape, arch: str) -> None:
        with self.active() as module:
            problem = module.Problem(hip, shape, "float16", 64, hip.device_of(arch))
            module.forward_and_backward(problem)

    def refuses(self, hip: Hip, shape: Shape, arch: str) -> None:
        with self.active() as module:
            error = module.aiter_attn.UnsupportedError
            problem = module.Problem(hip, shape, "float16", 64, hip.device_of(arch))
            with pytest.raises(error, match=self.variant_set):
                module.forward_and_backward(problem)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Wheel]]:
    """conftest.py's, and the other one, which is loaded after it."""
    folder = str(tmp_path_factory.mktemp("site-packages"))
    with zipfile.ZipFile(os.environ["OTHER_WHEEL"]) as files:
        files.extractall(folder)
    first = Wheel(_take())
    sys.path.insert(0, folder)
    importlib.import_module(problems.__name__)
    sys.path.remove(folder)
    second = Wheel(_take())
    assert second.extension.is_relative_to(folder)
    yield [first, second]
    with first.active():
        pass


def _mapped(library: Path) -> list[range]:
    """The addresses of a loaded file, from its beginning."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    ours = [line.split()[0] for line in lines if line.endswith(str(library))]
    return [range(*(int(end, 16) for end in re.split("-", line))) for line in ours]


def _bound(library: Path) -> dict[str, int]:
    """Symbols that a loaded file takes from the process -> the addresses that it was given."""
    start = _mapped(library)[0].start
    found: dict[str, int] = {}
    with library.open("rb") as file:
        elf = ELFFile(file)
        for section in elf.iter_sections():
            if not isinstance(section, RelocationSection):
                continue
            symbols = elf.get_section(section["sh_link"])
            for relocation in section.iter_relocations():
                if name := symbols.get_symbol(relocation["r_info_sym"]).name:
                    slot = ctypes.c_uint64.from_address(start + relocation["r_offset"])
                    found[name] = slot.value
    return found


def test_each_has_kernels_of_its_own(hip: Hip, wheels: list[Wheel]) -> None:
    packed, plain = wheels
    archs = sorted({*packed.archs} & {*plain.archs})
    assert archs
    for arch in archs:
        packed.run(hip, _PACKED, arch)
        plain.run(hip, _PLAIN, arch)
        packed.refuses(hip, _PLAIN, arch)
        plain.run(hip, _PLAIN, arch)
        packed.run(hip, _PACKED, arch)


def test_no_symbol_is_the_others(wheels: list[Wheel]) -> None:
    for ours, other in (wheels, wheels[::-1]):
        bound = _bound(ours.extension)
        assert {"dlopen", "malloc", "PyErr_SetString"} <= bound.keys()
        there = _mapped(other.extension)
        assert there
        assert not [n for n, address in bound.items() if any(address in part for part in there)]
