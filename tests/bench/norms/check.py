# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Checks every kernel against float64 on the device at hand: types, sizes, strides, hard rows.

    python3 -m tests.bench.norms.check [--small]

--small: fewer and smaller cases, for a run under compute-sanitizer. Exits with 1 if any case fails.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import multiprocessing
from collections.abc import Iterator

import torch

from kernels.norm.configuration import choose, load
from tests.bench.norms import cuda, operations

F64 = torch.float64
HIDDEN = (1, 3, 40, 64, 100, 127, 256, 768, 1000, 1024, 1025, 2048, 2304, 3072, 4096, 5120, 8192)
HIDDEN += (8200, 12288, 16384, 20480, 32768, 50257, 65536, 131072, 131073, 262144)
MIXED_HIDDEN = (768, 1024, 4096, 16384, 65536)
SMALL_HIDDEN = (3, 1000, 1024, 16384, 65536)
B, H, F = torch.bfloat16, torch.float16, torch.float32
E4, E5 = torch.float8_e4m3fn, torch.float8_e5m2
TYPES = ((B, B, B), (H, H, H), (F, F, F), (F, F, B), (F, F, H), (B, F, B), (H, F, H))
FP8_TYPES = ((B, B, E4), (F, F, E4), (H, H, E5), (B, B, E5))
# Half a unit in the last place, and the spacing of the subnormals.
ROUNDING = {
    F: (2.0**-24, 0.0),
    B: (2.0**-8, 2.0**-133),
    H: (2.0**-11, 2.0**-24),
    E4: (2.0**-4, 2.0**-9),
    E5: (2.0**-3, 2.0**-16),
}
FLOAT32_SLACK = 1e-5  # of the largest element of the row, for arithmetic in float32


@dataclasses.dataclass(frozen=True)
class Case:
    operation: str
    hidden: int
    rows: int
    types: tuple[torch.dtype, torch.dtype, torch.dtype]
    add: bool = False
    zero_centred: bool = False
    padding: int = 0  # elements between rows
    mask: str = "none"
    queries: int = 1

    def __str__(self) -> str:
        types = "/".join(operations.TYPE_NAMES[t] for t in self.types)
        rest = f"add={self.add} centred={self.zero_centred} pad={self.padding} mask={self.mask}"
        return f"{self.operation} {self.rows}x{self.hidden} {types} {rest}"

    @property
    def backward(self) -> bool:
        return self.operation.endswith("backward")

    @property
    def layer(self) -> bool:
        return self.operation.startswith("layer")

    def reads(self) -> list[torch.dtype]:
        x, _, y = self.types
        if self.operation.startswith("softmax"):
            return [x, x] if self.backward else [x]
        return [x] * (2 if self.add else 1) + ([y] if self.backward else [])

    def vector(self) -> int:
        x, w, y = self.types
        vector = 16 // min(max(t.itemsize, 2) for t in (x, w, y))
        stride = self.hidden + self.padding
        while self.hidden % vector or stride % vector:
            vector //= 2
        return vector


def cases(small: bool) -> Iterator[Case]:
    rows = 5 if small else 301
    for operation in ("rms_forward", "layer_forward", "rms_backward", "layer_backward"):
        for hidden in SMALL_HIDDEN if small else HIDDEN:
            yield Case(operation, hidden, rows if hidden < 1 << 17 else 40, (B, B, B))
        for hidden in (1024,) if small else MIXED_HIDDEN:
            for types in TYPES[1:]:
                yield Case(operation, hidden, rows, types)
            yield Case(operation, hidden, rows, (B, B, B), zero_centred=True, padding=24)
            yield Case(operation, hidden, rows, (B, B, B), padding=1)
            if operation.startswith("rms"):
                yield Case(operation, hidden, rows, (B, B, B), add=True)
                yield Case(operation, hidden, rows, (F, F, F), add=True)
            if operation.endswith("forward"):
                for types in FP8_TYPES:
                    yield Case(operation, hidden, rows, types)
        yield Case(operation, 4096, 1, (B, B, B))
    for operation in ("softmax_forward", "softmax_backward"):
        for mask in operations.MASKS:
            for hidden in SMALL_HIDDEN if small else HIDDEN:
                queries = min(hidden, 3 if small else 50)
                yield Case(operation, hidden, 6 * queries, (B, B, B), mask=mask, queries=queries)
            for hidden in (1024,) if small else MIXED_HIDDEN:
                for t in (H, F):
                    yield Case(operation, hidden, 12, (t, t, t), mask=mask, queries=2)
                yield Case(operation, hidden, 12, (H, H, H), mask=mask, queries=2, padding=8)
        if not small:
            yield Case(operation, 64, 6 * 64, (B, B, B), mask="causal", queries=64)
            yield Case(operation, 64, 6 * 100, (B, B, B), mask="causal", queries=100)


def prepare(case: Case):
    """The configuration, source and macros of a case."""
    vector = case.vector()
    element_bytes = sum(t.itemsize for t in case.reads())
    c = choose(
        load()[case.operation],
        case.hidden,
        vector,
        element_bytes,
        sixteen_byte_rows=all(vector * t.itemsize % 16 == 0 for t in case.reads()),
    )
    if case.operation.startswith("softmax"):
        macros = operations.softmax_macros(c, case.hidden, vector, case.types[0], case.mask)
        return c, "softmax.cpp", macros
    macros = operations.norm_macros(
        c,
        case.layer,
        case.hidden,
        vector,
        case.types,
        backward=case.backward,
        add=case.add,
        beta=case.layer and not case.backward,
        zero_centred=case.zero_centred,
    )
    return c, "norm_backward.cpp" if case.backward else "norm_forward.cpp", macros


def compile_case(case: Case) -> bytes | str:
    _, source, macros = prepare(case)
    try:
        return cuda.compile_cubin(source, macros)
    except cuda.CompileError as error:
        return str(error)


class Failure(Exception):
    """What differs."""


def matrix(case: Case, dtype: torch.dtype, fill: torch.Tensor | None = None) -> torch.Tensor:
    """Rows with the case's padding, which holds 7s; NaN where `fill` is None."""
    whole = torch.full((case.rows, case.hidden + case.padding), 7.0, device="cuda").to(dtype)
    view = whole[:, : case.hidden]
    view.copy_(fill.to(dtype) if fill is not None else torch.full_like(view, float("nan")))
    return view


def compare(name: str, got: torch.Tensor, want: torch.Tensor, slack: torch.Tensor | float) -> None:
    """Within rounding to the type of `got` plus `slack`; NaN and infinity where they belong."""
    got64 = got.to(F).to(F64)
    relative, spacing = ROUNDING[got.dtype]
    if got.dtype in (E4, E5):
        largest = torch.finfo(got.dtype).max
        want = torch.where(want.isnan(), want, want.clamp(-largest, largest))
    elif got.dtype == H:
        want = torch.where(want.abs() >= 65520, want.sign() * float("inf"), want)
    allowed = 1.02 * relative * want.abs() + spacing + slack
    exact = (got64 == want) | (got64.isnan() & want.isnan())
    bad = ~exact & ~((got64 - want).abs() <= allowed)
    if bad.any():
        i = bad.nonzero()[0].tolist()
        raise Failure(
            f"{name}: {int(bad.sum())} of {bad.numel()} wrong, first at {i}:"
            f" {got64[tuple(i)].item()!r}, not {want[tuple(i)].item()!r}"
        )


def unharmed(case: Case, view: torch.Tensor) -> None:
    if case.padding:
        whole = view.as_strided((case.rows - 1, case.hidden + case.padding), view.stride())
        if not (whole[:, case.hidden :].to(F) == 7).all():
            raise Failure("wrote between rows")


def hard_rows(x: torch.Tensor, dtype: torch.dtype) -> None:
    """Puts rows into x that break careless kernels."""
    large = 1e3 if dtype == H else 1e15
    for i, row in enumerate(x[1 : min(12, len(x) - 1)]):
        if i == 0:
            row.fill_(3)
        elif i == 1:
            row.zero_()
        elif i == 2:
            row.mul_(large)
        elif i == 3:
            row.mul_(1e-30)
        elif i == 4:
            row[len(row) // 2] = float("nan")
        elif i == 5:
            row[-1] = float("inf")
        elif i == 6:
            row[0] = large
        elif i == 7:
            row.add_(100)


def row_slack(want: torch.Tensor, factor: torch.Tensor | float = 1.0) -> torch.Tensor:
    largest = torch.where(want.isfinite(), want.abs(), 0).amax(-1, keepdim=True)
    return FLOAT32_SLACK * largest * factor


def norm_reference(case: Case, x: torch.Tensor, epsilon: float):
    """mean, rstd and the condition of the rows, in float64."""
    mean = x.mean(-1, keepdim=True) if case.layer else torch.zeros_like(x[:, :1])
    rstd = ((x - mean).square().mean(-1, keepdim=True) + epsilon).rsqrt()
    condition = torch.nan_to_num(x.abs().amax(-1, keepdim=True) * rstd, 1.0, 1.0).clamp(min=1)
    return mean, rstd, condition if case.layer else torch.ones_like(condition)


def run_norm_forward(case: Case, module: cuda.Module, c) -> None:
    xt, wt, yt = case.types
    x = torch.randn(case.rows, case.hidden, device="cuda")
    hard_rows(x, xt)
    x = matrix(case, xt, x)
    w = torch.randn(case.hidden, device="cuda").to(wt)
    b = torch.randn(case.hidden, device="cuda").to(wt) if case.layer else None
    y = matrix(case, yt)
    mean, rstd = (torch.full((case.rows,), float("nan"), device="cuda") for _ in range(2))
    residual = matrix(case, xt, torch.randn_like(x, dtype=F)) if case.add else None
    total = matrix(case, xt) if case.add else None
    scale = amax = None
    if yt in (E4, E5):
        scale, amax = torch.full((1,), 1.7, device="cuda"), torch.zeros(1, device="cuda")
    operations.norm_forward(module, c, x, w, b, y, mean, rstd, 1e-5, residual, total, scale, amax)()
    torch.cuda.synchronize()
    h = x.to(F64)
    if case.add:
        h = h + residual.to(F64)
        compare("sum", total, h, 2.0**-23 * h.abs().nan_to_num(0, 0))
        unharmed(case, total)
        h = total.to(F64)
    m, r, condition = norm_reference(case, h, 1e-5)
    want = (h - m) * r * (w.to(F64) + case.zero_centred)
    if case.layer:
        want = want + b.to(F64)
        compare("mean", mean, m[:, 0], 1e-6 * torch.nan_to_num(h.abs().amax(-1), 0, 0))
    compare("rstd", rstd, r[:, 0], 2e-6 * (r * condition)[:, 0].nan_to_num(0, 0))
    slack = row_slack(want, condition)
    if amax is not None:
        largest = torch.where(want.isfinite(), want.abs(), 0).amax()
        if not abs(amax.item() - largest.item()) <= 1e-4 * largest.item():
            raise Failure(f"amax {amax.item()}, not {largest.item()}")
        want, slack = want * scale.item(), slack * 2
    compare("y", y, want, slack)
    unharmed(case, y)


def run_norm_backward(case: Case, module: cuda.Module, c) -> None:
    xt, wt, yt = case.types
    for hard in (False, True):
        x = torch.randn(case.rows, case.hidden, device="cuda") + 0.5
        if hard:
            hard_rows(x, xt)
        x = matrix(case, xt, x)
        dy = matrix(case, yt, torch.randn(case.rows, case.hidden, device="cuda"))
        dh = matrix(case, xt, torch.randn_like(x, dtype=F)) if case.add else None
        w = torch.randn(case.hidden, device="cuda").to(wt)
        m, r, condition = norm_reference(case, x.to(F64), 1e-5)
        mean, rstd = m[:, 0].to(F), r[:, 0].to(F)
        m, r = mean.to(F64)[:, None], rstd.to(F64)[:, None]
        dx = matrix(case, xt)
        dw, db = (torch.full_like(w, float("nan")) for _ in range(2))
        run = operations.norm_backward(
            module, c, x, dy, w, mean, rstd, dx, dw, db if case.layer else None, dh
        )
        run()
        torch.cuda.synchronize()
        g = dy.to(F64)
        xhat = (x.to(F64) - m) * r
        wdy = g * (w.to(F64) + case.zero_centred)
        want = wdy - xhat * (wdy * xhat).mean(-1, keepdim=True)
        if case.layer:
            want = want - wdy.mean(-1, keepdim=True)
        want = want * r
        largest = torch.nan_to_num(xhat.abs().amax(-1, keepdim=True), 1.0, 1.0).clamp(min=1)
        slack = row_slack(wdy * r, condition**2 * largest)
        if case.add:
            want = want + dh.to(F64)
            slack = slack + row_slack(want)
        compare(f"dx hard={hard}", dx, want, slack.nan_to_num(0, 0))
        unharmed(case, dx)
        if hard:
            continue
        terms = g * xhat
        # xhat of a row with little spread has the rounding of x, not its own.
        uncertain = g.abs() * (xhat.abs() + (condition if case.layer else 0))
        compare("dgamma", dw, terms.sum(0), FLOAT32_SLACK * uncertain.sum(0))
        if case.layer:
            compare("dbeta", db, g.sum(0), FLOAT32_SLACK * g.abs().sum(0))
        first = dw.clone()
        run()
        torch.cuda.synchronize()
        if not torch.equal(first, dw):
            raise Failure("dgamma differs between two runs")


def allowed_columns(case: Case) -> torch.Tensor:
    """(rows, hidden): whether the causal mask lets a column take part."""
    column = torch.arange(case.hidden, device="cuda")
    query = torch.arange(case.rows, device="cuda")[:, None] % case.queries
    return column <= query + case.hidden - case.queries


def run_softmax_forward(case: Case, module: cuda.Module, c) -> None:
    dtype, scale, repeat = case.types[0], 0.37, 3
    x = torch.randn(case.rows, case.hidden, device="cuda") * 3
    hard_rows(x, H)
    if case.rows > 14:
        x[13] = -float("inf")
        x[12, : case.hidden // 2] = -float("inf")
    x = matrix(case, dtype, x)
    y = matrix(case, dtype)
    mask = None
    s = x.to(F64) * scale
    if case.mask == "explicit":
        count = case.rows // case.queries // repeat
        mask = (torch.rand(count, case.queries, case.hidden, device="cuda") < 0.3).to(torch.uint8)
        mask[0, 0] = 1
        whole = mask.repeat_interleave(repeat, 0).reshape(case.rows, case.hidden)
        s = torch.where(whole == 1, -10000.0, s)
    allowed = allowed_columns(case) if case.mask == "causal" else torch.ones_like(s, dtype=bool)
    s = torch.where(allowed, s, -float("inf"))
    want = s.softmax(-1)
    if case.mask == "explicit":
        want = torch.where(s.amax(-1, keepdim=True) == -10000, 0.0, want)
    want = torch.where(allowed, want, 0.0)
    operations.softmax_forward(module, c, x, y, scale, case.queries, mask, repeat)()
    torch.cuda.synchronize()
    compare("y", y, want, row_slack(want) + 1e-5 * want.nan_to_num(0))
    unharmed(case, y)


def run_softmax_backward(case: Case, module: cuda.Module, c) -> None:
    dtype, scale = case.types[0], 0.37
    allowed = allowed_columns(case) if case.mask == "causal" else True
    s = torch.randn(case.rows, case.hidden, device="cuda", dtype=F64) * 3
    y = s.masked_fill(~allowed, -float("inf")) if case.mask == "causal" else s
    y = matrix(case, dtype, y.softmax(-1).nan_to_num(0))
    dy = matrix(case, dtype, torch.randn(case.rows, case.hidden, device="cuda"))
    dx = matrix(case, dtype)
    operations.softmax_backward(module, c, y, dy, dx, scale, case.queries)()
    torch.cuda.synchronize()
    y64, g = y.to(F64), dy.to(F64)
    want = scale * y64 * (g - (y64 * g).sum(-1, keepdim=True))
    compare("dx", dx, want, row_slack(want) + 1e-5 * y64.abs())
    unharmed(case, dx)


def run(case: Case, module: cuda.Module) -> None:
    c = prepare(case)[0]
    if case.operation == "softmax_forward":
        run_softmax_forward(case, module, c)
    elif case.operation == "softmax_backward":
        run_softmax_backward(case, module, c)
    elif case.backward:
        run_norm_backward(case, module, c)
    else:
        run_norm_forward(case, module, c)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--processes", type=int, default=14)
    arguments = parser.parse_args()
    chosen = list(cases(arguments.small))
    failed = 0
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(arguments.processes, context) as pool:
        for case, cubin in zip(chosen, pool.map(compile_case, chosen, chunksize=2), strict=True):
            try:
                if isinstance(cubin, str):
                    raise Failure(cubin[:600])
                torch.manual_seed(case.hidden)
                torch.zeros(1, device="cuda")  # the context that the driver calls need
                run(case, cuda.Module(cubin))
            except (Failure, RuntimeError) as failure:
                failed += 1
                print(f"{case}: {failure}", flush=True)
    print(f"{len(chosen)} cases, {failed} failed")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
