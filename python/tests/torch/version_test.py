# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A torch that is too old, or not there: told apart from one that is broken."""

from __future__ import annotations

import importlib
import sys
import types

import aiter_attn
import pytest


def imported_with(version: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    module = None if version is None else types.ModuleType("torch")
    if module is not None:
        module.__version__ = version  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.delitem(sys.modules, "aiter_attn.torch", raising=False)
    importlib.import_module("aiter_attn.torch")


@pytest.mark.parametrize("version", ["2.3.1", "1.13.1+rocm5.2", "unknown"])
def test_too_old(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImportError) as caught:
        imported_with(version, monkeypatch)
    assert str(caught.value).startswith(f"aiter_attn.torch: torch {version}; allowed: 2.4 or newer")
    assert "aiter_attn.mha_fwd" in str(caught.value)  # the function that serves it


def test_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImportError, match=r"torch is not installed; .* pip install aiter-attn\["):
        imported_with(None, monkeypatch)


def test_the_package_needs_none() -> None:
    assert aiter_attn.__version__
    assert "torch" not in sys.modules
