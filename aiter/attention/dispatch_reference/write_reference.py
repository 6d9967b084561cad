# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes upstream's dispatchers, and a launch table, over one wide set of instances.

By default the set holds every instance that a problem of the C ABI can ask for: all head sizes,
lengths and paddings, without bias, dropout and what else the C ABI does not have. The rows have no
code.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

from kernels.ck_fmha.ckgen import emission
from kernels.ck_fmha.ckgen.directions import Candidate
from kernels.ck_fmha.ckgen.pool import Pool, instances_of
from kernels.launch_table.table import launch_table

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fmha-dir", type=Path, required=True)
    parser.add_argument("--everything", action="store_true", help="all that upstream has")
    parser.add_argument("--fwd", type=Path, required=True)
    parser.add_argument("--bwd", type=Path, required=True)
    parser.add_argument("--table", type=Path, required=True)
    options = parser.parse_args()
    pool = Pool(options.fmha_dir)
    candidates = [c for c in pool.candidates if options.everything or _can_be_asked_for(c)]
    options.fwd.write_text(pool.dispatcher("fwd", candidates), "utf-8")
    options.bwd.write_text(pool.dispatcher("bwd", candidates), "utf-8")
    rows = [emission.row(instance, "none") for instance in instances_of(candidates)]
    code_objects = {
        (row["name"], ARCH): {"key": hashlib.sha256(row["name"].encode()).hexdigest()}
        for row in rows
    }
    options.table.write_bytes(launch_table(rows, code_objects, [ARCH], "reference").blob)


if __name__ == "__main__":
    main()
