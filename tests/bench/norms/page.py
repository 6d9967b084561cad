# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The page of plots, of earlier results of bench.py.

    python3 -m tests.bench.norms.page bench.json --out bench.html

bench.py writes the page too (--page).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from tests.bench.norms.plots import PageError, page, read

_OUT = flags.DEFINE_string("out", "bench.html", "the page")


def main(argv: Sequence[str]) -> None:
    if len(argv) != 2:
        raise app.UsageError(f"give one file that bench.py wrote by --out; got {len(argv) - 1}")
    try:
        Path(_OUT.value).write_text(page(*read(Path(argv[1]))))
    except (PageError, OSError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    app.run(main)
