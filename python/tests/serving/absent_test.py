# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The modules of servers where neither the server nor torch is installed."""

from __future__ import annotations

import sys

import aiter_attn.sglang
import aiter_attn.vllm
import pytest
from aiter_attn import UnsupportedError, _versions


def test_they_are_imported_and_say_who_is_missing() -> None:
    assert not {"torch", "vllm", "sglang"} & sys.modules.keys()
    for module, name in ((aiter_attn.vllm, "vllm"), (aiter_attn.sglang, "sglang")):
        with pytest.raises(ModuleNotFoundError, match=f"'{name}'"):
            module.register()


@pytest.mark.parametrize("found", ["0.33", "0.33.0", "0.33.2.post1", "0.33+rocm70", "0.33rc1"])
def test_versions_that_are_taken(found: str) -> None:
    _versions.check("vllm", found, "0.33")


@pytest.mark.parametrize("found", ["0.3", "0.330.1", "0.34.0", "1.0.33", "dev", ""])
def test_versions_that_are_not(found: str) -> None:
    with pytest.raises(
        UnsupportedError, match=rf"vllm: version {found}; allowed: 0\.33, .*install"
    ):
        _versions.check("vllm", found, "0.33")
