# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""An interface that is another one than a wheel's is told of."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from python.tests.serving import compare

REAL = '''
from .other import choices
class Backend(Base):
    """Text."""
    kinds: list[str] = ["a"]
    NAME = 1
    def run(self, q, scale=1.0, *, out=None, more=0): ...
    def __init__(self, size, device): ...
def register(name): ...
'''


def told(ours: str) -> list[str]:
    return list(compare.differences(ours, REAL))


@pytest.mark.parametrize(
    "ours",
    [
        "",
        "class Backend: pass",
        "choices = ['a']",
        "class Backend:\n  kinds: list[str] = ['a']\n  NAME = 1",
        "class Backend:\n  def run(self, q, scale=1.0, *, out=None): return 1",
        "class Backend:\n  def __init__(self, size): self.size = size",
    ],
)
def test_a_part_of_it_is_the_same(ours: str) -> None:
    assert told(ours) == []


@pytest.mark.parametrize(
    ("ours", "line"),
    [
        ("class Front: pass", "Front: not there"),
        ("class Backend:\n  NAME = 2", "Backend.NAME: 2 here, 1 there"),
        ("class Backend:\n  def go(self): ...", "Backend.go: not there"),
        ("class Backend:\n  def run(self, q, scale=2.0): ...",
         "Backend.run: scale=2.0 here, 1.0 there"),
        ("class Backend:\n  def run(self, scale=1.0, q=1): ...",
         "Backend.run: arguments self, scale, q here, self, q, scale, out, more there"),
        ("class Backend:\n  def run(self): ...", "Backend.run: needs q, too"),
        ("def register(title): ...", "register: arguments title here, name there"),
    ],
)  # fmt: skip
def test_what_differs_is_named(ours: str, line: str) -> None:
    assert told(ours)[0] == line


def test_wheels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel = tmp_path / "vllm-0.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        for file in (compare.INTERFACES / "vllm").rglob("*.py"):
            made.write(file, str(file.relative_to(compare.INTERFACES)))
    assert compare.main([str(wheel)]) == 0
    assert capsys.readouterr().out.endswith(" files compared\n")
    with zipfile.ZipFile(tmp_path / "sglang-0.1-py3-none-any.whl", "w"):
        pass
    assert compare.main([str(tmp_path / "sglang-0.1-py3-none-any.whl")]) == 1
    assert "attention_registry.py: " in capsys.readouterr().out
    assert compare.main([str(tmp_path / "other-1.whl")]) == 2
    assert compare.main([]) == 2
