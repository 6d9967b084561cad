# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes CK's own dispatchers, and a launch table, over one wide set of instances.

The set holds every instance that a problem of the C ABI can ask for: all head sizes, lengths and
paddings, without bias, dropout and what else the C ABI does not have. The rows have no code.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ckgen.emission import instance_record
from ckgen.pool import Candidate, Pool
from ckgen.selection import instances_of

from kernels.private.launch_table import table_source

ARCH = "gfx942"
_NOT_IN_THE_C_ABI = {
    "bias": "none",
    "bias_grad": False,
    "dropout": False,
    "logits_soft_cap": False,
    "skip_min_seqlen_q": False,
    "deterministic": False,
}


def _can_be_asked_for(candidate: Candidate) -> bool:
    return all(
        candidate.traits.get(name, value) == value for name, value in _NOT_IN_THE_C_ABI.items()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fmha-dir", type=Path, required=True)
    parser.add_argument("--fwd", type=Path, required=True)
    parser.add_argument("--bwd", type=Path, required=True)
    parser.add_argument("--table", type=Path, required=True)
    options = parser.parse_args()
    pool = Pool(options.fmha_dir)
    candidates = [c for c in pool.candidates if _can_be_asked_for(c)]
    options.fwd.write_text(pool.fwd_dispatcher(candidates), "utf-8")
    options.bwd.write_text(pool.bwd_dispatcher(candidates), "utf-8")
    rows = [{**instance_record(i), "launch": None} for i in instances_of(candidates)]
    no_code = {"arch": ARCH, "key": "", "sha256": "", "size": 0, "packed_size": 0}
    code_objects = {(row["name"], ARCH): {**no_code, "data_symbol": "no_code"} for row in rows}
    options.table.write_text(table_source(rows, code_objects, [ARCH], "reference"), "utf-8")


if __name__ == "__main__":
    main()
