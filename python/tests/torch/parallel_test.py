# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Training on two processes: DistributedDataParallel and FSDP over modules with attention of ours,
by gloo on the CPU. Parameters after some steps are those of one process with the whole batch."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import aiter_attn
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

STEPS, RANKS = 3, 2


class Block(torch.nn.Module):
    """Attention and an RMSNorm of ours between torch's layers."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(32, 3 * 32)
        self.outer = torch.nn.Linear(32, 32)
        self.gain = torch.nn.Parameter(torch.ones(32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.inner(aiter_attn.rms_norm(x, self.gain)).unflatten(-1, (3, 4, 8)).unbind(-3)
        return x + self.outer(aiter_attn.flash_attn_func(q, k, v, causal=True).flatten(-2))


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(Block(), Block())


def batches() -> torch.Tensor:
    return torch.randn(STEPS, 2 * RANKS, 6, 32, generator=torch.Generator().manual_seed(1))


def train(module: torch.nn.Module, part: slice) -> None:
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
    for batch in batches():
        optimiser.zero_grad()
        module(batch[part]).square().mean().backward()
        optimiser.step()


def alone() -> list[torch.Tensor]:
    module = model()
    train(module, slice(None))
    return [p.detach() for p in module.parameters()]


def ddp(rank: int) -> list[torch.Tensor]:
    module = DistributedDataParallel(model())
    train(module, slice(2 * rank, 2 * rank + 2))
    return [p.detach() for p in module.parameters()]


def fsdp(rank: int) -> list[torch.Tensor]:
    module = model()
    mesh = init_device_mesh("cpu", (RANKS,))
    for layer in (*module, module):
        fully_shard(layer, mesh=mesh)
    assert all(p.to_local().numel() < p.numel() for p in module.parameters())
    train(module, slice(2 * rank, 2 * rank + 2))
    return [p.full_tensor().detach() for p in module.parameters()]


def work(rank: int, way: Callable[[int], list[torch.Tensor]], port: int, folder: str) -> None:
    torch.set_num_threads(1)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=RANKS)
    try:
        torch.save(way(rank), f"{folder}/{rank}")
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("way", [ddp, fsdp], ids=["ddp", "fsdp"])
def test_parameters_are_those_of_one_process(way: Any, tmp_path: Any) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(work, (way, port, str(tmp_path)), nprocs=RANKS)
    want, before = alone(), [p.detach() for p in model().parameters()]
    assert all(not torch.equal(a, b) for a, b in zip(want, before, strict=True))
    for rank in range(RANKS):
        got = torch.load(tmp_path / str(rank))
        for ours, expected in zip(got, want, strict=True):
            torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)
