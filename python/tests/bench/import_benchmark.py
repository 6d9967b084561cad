# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The cost of `import aiter_attn`: `./bazelw run //python/tests/bench:import_benchmark`."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys

_RUNS = 15
_IMPORTS = {
    "python alone": "pass",
    "numpy": "import numpy",
    "aiter_attn": "import aiter_attn",
    "numpy, then aiter_attn": "import numpy, aiter_attn",
}


def milliseconds(code: str) -> float:
    """Processor time of a fresh interpreter, which other work on the machine sways least."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e3


def main() -> int:
    times: dict[str, list[float]] = {name: [] for name in _IMPORTS}
    for _ in range(_RUNS):
        for name, code in _IMPORTS.items():
            times[name].append(milliseconds(code))
    print(f"{'import':<24}{'median ms':>10}{'least ms':>10}   (processor time, {_RUNS} runs each)")
    for name, each in times.items():
        print(f"{name:<24}{statistics.median(each):>10.1f}{min(each):>10.1f}")
    pairs = zip(times["numpy, then aiter_attn"], times["numpy"], strict=True)
    print(f"aiter_attn beyond numpy: {statistics.median(both - one for both, one in pairs):.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
