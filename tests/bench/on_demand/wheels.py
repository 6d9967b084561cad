# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The cost of a wheel to its user: its bytes, and in processes of their own the time of an import,
the memory after it, and the time in which a call's kernels are chosen.

    python3.11 tests/bench/on_demand/wheels.py [--rounds=21] WHEEL...

Any Python of the wheels' ABI will do. Each round starts a process of each wheel, in turns; medians
are printed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

_CHILD = """
import json, sys, time, timeit
start = time.perf_counter()
import aiter_attn
imported = time.perf_counter() - start
def memory():
    fields = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(fields["VmRSS"].split()[0])
after_import = memory()
from aiter_attn import _C
asked, choose = [], _C.plan_fwd
def record(*arguments):
    asked.append(arguments)
    return choose(*arguments)
_C.plan_fwd = record
shape = (2, 128, 2, 64)
aiter_attn.explain(shape, shape, shape, dtype="float16", arch=sys.argv[1], causal=True)
calls = 20000
chosen = min(timeit.repeat(lambda: choose(*asked[0]), number=calls, repeat=5)) / calls
print(json.dumps([imported * 1e3, after_import / 1024, memory() / 1024, chosen * 1e9]))
"""


def _measured(site: Path) -> list[float]:
    """ms of the import, MiB after it and after a call, ns of a choice."""
    archs = json.loads((site / "aiter_attn/manifest.json").read_text("utf-8"))["archs"]
    command = [sys.executable, "-c", _CHILD, archs[0]]
    environment = {"PYTHONPATH": str(site), "HOME": str(site)}
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    measured: list[float] = json.loads(said.stdout)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sites: dict[Path, Path] = {}
        for number, wheel in enumerate(arguments.wheels):
            sites[wheel] = Path(folder, str(number))
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(sites[wheel])
        rounds = [
            {wheel: _measured(site) for wheel, site in sites.items()}
            for _ in range(arguments.rounds)
        ]
        for wheel, site in sites.items():
            unpacked = sum(file.stat().st_size for file in site.rglob("*") if file.is_file())
            times = zip(*(each[wheel] for each in rounds), strict=True)
            importing, after_import, after_call, choosing = map(statistics.median, times)
            print(
                f"{wheel}: {wheel.stat().st_size:,} bytes, unpacked {unpacked:,}; import "
                f"{importing:.1f} ms, then {after_import:.1f} MiB, after a plan {after_call:.1f} "
                f"MiB; kernels chosen in {choosing:.0f} ns"
            )


if __name__ == "__main__":
    main()
