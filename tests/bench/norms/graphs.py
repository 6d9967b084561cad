# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Times of small calls in a CUDA graph, and the shapes that they are measured for."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch
from absl import flags

SHAPES = ["1x4096", "1x8192", "1x16384", "8x4096", "64x8192", "128x4096", "512x8192"]
CALLS, REPLAYS = 20, 30


def read_shape(text: str) -> tuple[int, int]:
    """Raises ValueError."""
    rows, hidden = text.split("x")
    if min(int(rows), int(hidden)) < 1:
        raise ValueError(text)
    return int(rows), int(hidden)


def is_shape(text: str) -> bool:
    try:
        read_shape(text)
    except ValueError:
        return False
    return True


def check_shapes(shapes: flags.FlagHolder[list[str]]) -> None:
    """Has a flag refuse all but shapes."""
    flags.register_validator(
        shapes, lambda texts: all(map(is_shape, texts)), "a shape is rows x columns: 64x8192"
    )


def microseconds(function: Callable[[], object]) -> float:
    """Of a call, on the current stream."""
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        for _ in range(CALLS):
            function()
    graph.replay()
    times = []
    for _ in range(REPLAYS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / CALLS)
    return statistics.median(times)
