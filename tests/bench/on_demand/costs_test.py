# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.on_demand import costs


def test_kernels_are_chosen_by_their_names() -> None:
    specs = [Path("a/fwd.gfx942.spec"), Path("a/bwd.gfx942.spec")]
    assert costs.chosen(specs, "") == specs
    assert costs.chosen(specs, "^b") == specs[1:]
    with pytest.raises(ValueError, match=r"finds none of:\n  fwd\.gfx942\n  bwd\.gfx942"):
        costs.chosen(specs, "convert")
    with pytest.raises(ValueError, match="no regular expression"):
        costs.chosen(specs, "(")


def test_all_of_a_process_is_counted() -> None:
    busy = "sum(range(3_000_000))"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}]); print('ok')"
    cost, said = costs.first_use([sys.executable, "-c", child])
    assert said == "ok\n" and cost.cpu > 0.02 and cost.wall > 0.02
    with pytest.raises(subprocess.CalledProcessError):
        costs.first_use([sys.executable, "-c", "raise SystemExit(1)"])
