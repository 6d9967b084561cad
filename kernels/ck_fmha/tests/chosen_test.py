# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A kernel of options/lock.json, compiled: its spec has the options, its key is another than that
of the compile that they were chosen for, and its machine code costs what the lock says."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

from kernels.archs.archs import read_archs
from kernels.code_object.spec import CodeObjectSpec
from kernels.options.options import Entry, costs, parse_lock
from kernels.resources.measured import Measured

ARCH = os.environ["ARCH"]
LOCK = parse_lock(Path("kernels/ck_fmha/options/lock.json").read_text())
ENTRY: Entry = LOCK[ARCH][os.environ["MEMBER"]]
SPEC = CodeObjectSpec.parse(Path(os.environ["SPEC"]).read_bytes())
(FIGURES,) = Path(os.environ["FIGURES"]).read_text().splitlines()


def test_the_options_are_in_the_spec_and_so_in_the_key():
    given = tuple(flag for option in ENTRY.options for flag in ("-mllvm", option))
    assert SPEC.flags[-len(given) :] == given
    without = dataclasses.replace(SPEC, flags=SPEC.flags[: -len(given)])
    assert without.key() == ENTRY.key
    assert SPEC.key() != ENTRY.key
    record = json.loads(Path(os.environ["METADATA"]).read_text())
    assert record["key"] == SPEC.key()


def test_the_object_is_made_with_these_options():
    measured = Measured.parse(Path(FIGURES).read_text())
    unit = read_archs(os.environ["ARCHS"])[ARCH].compute_unit
    assert costs(measured, unit) == ENTRY.after
    assert ENTRY.after != ENTRY.before
