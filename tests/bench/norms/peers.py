# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The peers that a bench measures: torch, torch.compile, Liger, QuACK, where installed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

from tests.bench.norms.cell import Cell

PEERS = ("torch", "compile", "liger", "quack")


def optional(name: str):
    """The module, or None with the reason printed."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # a peer may fail on import in any way
        print(f"no {name}: {error!r}"[:200])
        return None


class Peers:
    """Calls of the peers, at the lowest level that each makes public."""

    def __init__(self) -> None:
        self.liger = {
            op: optional(f"liger_kernel.ops.{module}")
            for op, module in (("rms", "rms_norm"), ("layer", "layer_norm"), ("softmax", "softmax"))
        }
        self.quack = {"rms": optional("quack.rmsnorm"), "softmax": optional("quack.softmax")}
        torch._dynamo.config.cache_size_limit = 256
        plain = {
            "rms": lambda x, w: F.rms_norm(x, (x.shape[-1],), w, 1e-6),
            "layer": lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b, 1e-6),
            "softmax": lambda x: torch.softmax(x, -1),
        }
        self.functions = {"torch": plain}
        self.functions["compile"] = {k: torch.compile(f, dynamic=False) for k, f in plain.items()}

    def calls(self, cell: Cell) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """(peer, operation, call); a call may raise."""
        x, w, b, g = cell.x, cell.w, cell.b, cell.g
        arguments = {"rms": (x, w), "layer": (x, w, b), "softmax": (x,)}
        functions = dict(self.functions)
        liger = {}
        if self.liger["rms"]:
            rms = self.liger["rms"].LigerRMSNormFunction
            liger["rms"] = lambda x, w: rms.apply(x, w, 1e-6, 0.0, "llama", False)
        if self.liger["layer"]:
            layer = self.liger["layer"].LigerLayerNormFunction
            liger["layer"] = lambda x, w, b: layer.apply(x, w, b, 1e-6)
        if self.liger["softmax"]:
            liger["softmax"] = self.liger["softmax"].LigerSoftmaxFunction.apply
        functions["liger"] = liger
        for peer, table in functions.items():
            for op, function in table.items():
                values = arguments[op]

                def forward(function=function, values=values):
                    with torch.no_grad():
                        return function(*values)

                yield peer, f"{op}_forward", forward
                yield peer, f"{op}_backward", self._backward(function, values, g)
        rms, softmax = self.quack["rms"], self.quack["softmax"]
        if rms:
            wf, bf = w.float(), b.float()
            yield "quack", "rms_forward", lambda: rms.rmsnorm_fwd(x, w, store_rstd=True)
            yield "quack", "rms_backward", lambda: rms.rmsnorm_bwd(x, w, g, cell.rms_rstd)
            yield "quack", "layer_forward", lambda: rms.layernorm_fwd(x, wf, bf, 1e-6, True, True)
            if hasattr(rms, "layernorm_bwd"):
                yield (
                    "quack",
                    "layer_backward",
                    lambda: rms.layernorm_bwd(x, wf, g, cell.ln_rstd, cell.mean),
                )
        if softmax:
            yield "quack", "softmax_forward", lambda: softmax.softmax_fwd(x)
            yield "quack", "softmax_backward", lambda: softmax.softmax_bwd(g, cell.softmax)

    @staticmethod
    def _backward(function, values, g):
        """Autograd's backward pass alone; the forward pass runs at the first call."""
        state = []

        def call():
            if not state:
                inputs = [v.detach().clone().requires_grad_() for v in values]
                state.extend((inputs, function(*inputs)))
            return torch.autograd.grad(state[1], state[0], g, retain_graph=True)

        return call
