# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The cost of a call beside its computation: `./bazelw run //python/tests/bench:call_benchmark`.

One token, one head, on the CPU: the computation itself is next to nothing.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import aiter_attn
import numpy

_RUNS = 15
_CALLS = 2000


def microseconds(call: Callable[[], object]) -> float:
    """Processor time of a call, which other work on the machine sways least."""
    before = time.process_time()
    for _ in range(_CALLS):
        call()
    return (time.process_time() - before) / _CALLS * 1e6


def main() -> int:
    q = numpy.zeros((1, 1, 1, 64), numpy.float32)
    out, lse = aiter_attn.mha_fwd(q, q, q)
    calls: dict[str, Callable[[], object]] = {
        "flash_attn_func": lambda: aiter_attn.flash_attn_func(q, q, q),
        "mha_bwd": lambda: aiter_attn.mha_bwd(out, q, q, q, out, lse),
    }
    print(f"{'call':<24}{'median us':>10}{'least us':>10}   (processor time, {_RUNS} runs each)")
    for name, call in calls.items():
        times = [microseconds(call) for _ in range(_RUNS)]
        print(f"{name:<24}{statistics.median(times):>10.1f}{min(times):>10.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
