# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""What `import aiter_attn` costs: `./bazelw run //python/tests:import_benchmark`."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

_RUNS = 15
_IMPORTS = {
    "python alone": "pass",
    "numpy": "import numpy",
    "aiter_attn": "import aiter_attn",
    "numpy, then aiter_attn": "import numpy, aiter_attn",
}


def milliseconds(code: str) -> float:
    """Of a fresh interpreter."""
    start = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    return (time.perf_counter() - start) * 1e3


def main() -> int:
    print(f"{'import':<24}{'median ms':>10}{'least ms':>10}   ({_RUNS} processes each)")
    medians = {}
    for name, code in _IMPORTS.items():
        milliseconds(code)  # reads the files
        times = [milliseconds(code) for _ in range(_RUNS)]
        medians[name] = statistics.median(times)
        print(f"{name:<24}{medians[name]:>10.1f}{min(times):>10.1f}")
    beyond = medians["numpy, then aiter_attn"] - medians["numpy"]
    print(f"aiter_attn beyond numpy: {beyond:.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
