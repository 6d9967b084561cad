# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes upstream's dispatchers, and a launch table, over one wide set of instances.

By default the set holds every instance that a problem of the C ABI can ask for: all head sizes,
lengths and paddings, without bias, dropout and what else the C ABI does not have. The rows have no
code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from kernels.ck_fmha.ckgen import emission
from kernels.ck_fmha.ckgen.directions import Candidate
from kernels.ck_fmha.ckgen.pool import Pool, instances_of
from kernels.launch_table.table import launch_table

_FMHA_DIR = flags.DEFINE_string("fmha_dir", None, "upstream's 01_fmha folder", required=True)
_EVERYTHING = flags.DEFINE_bool("everything", False, "all that upstream has")
_FWD = flags.DEFINE_string("fwd", None, "the forward dispatcher", required=True)
_BWD = flags.DEFINE_string("bwd", None, "the backward dispatcher", required=True)
_TABLE = flags.DEFINE_string("table", None, "the launch table of the same", required=True)

ARCH = "gfx942"
_DIRECTIONS = ("fwd", "bwd")
_NOT_IN_THE_C_ABI = {
    "bias": "none",
    "bias_grad": False,
    "dropout": False,
    "logits_soft_cap": False,
    "skip_min_seqlen_q": False,
    "deterministic": False,
}


def _can_be_asked_for(candidate: Candidate) -> bool:
    return candidate.direction in _DIRECTIONS and all(
        candidate.traits.get(name, value) == value for name, value in _NOT_IN_THE_C_ABI.items()
    )


def main(_arguments: Sequence[str]) -> None:
    pool = Pool(Path(_FMHA_DIR.value))
    candidates = [c for c in pool.candidates if _EVERYTHING.value or _can_be_asked_for(c)]
    Path(_FWD.value).write_text(pool.dispatcher("fwd", candidates), "utf-8")
    Path(_BWD.value).write_text(pool.dispatcher("bwd", candidates), "utf-8")
    rows = [emission.row(instance, "none", left_out={}) for instance in instances_of(candidates)]
    code_objects = {
        (row["name"], ARCH): {"key": hashlib.sha256(row["name"].encode()).hexdigest()}
        for row in rows
    }
    Path(_TABLE.value).write_bytes(launch_table(rows, code_objects, [ARCH], "reference").blob)


if __name__ == "__main__":
    app.run(main)
