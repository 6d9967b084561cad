# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Checks every kernel against float64 on the device at hand: types, sizes, strides, hard rows.

    python3 -m tests.bench.norms.check [--small] [--kinds] [--library libaiter_attn.so]
        [--noclusters]

--small: fewer and smaller cases, for a run under compute-sanitizer. --kinds: the rare kinds alone.
--library: by the library's C ABI, which compiles and launches by itself. --noclusters: the kernels
of devices that have no clusters. Exits with 1 if any case fails.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import multiprocessing
from collections.abc import Callable, Iterator, Sequence

import torch
from absl import app, flags

from kernels.norm.configuration import Configuration
from tests.bench.norms import cuda, operations
from tests.bench.norms.check_cases import E4, E5, B, Case, F, H, cases, kinds
from tests.bench.norms.library import Library
from tests.support.norms.choices import AMPERE, HOPPER, Device, Rows, choose

_SMALL = flags.DEFINE_bool("small", False, "fewer and smaller cases")
_KINDS = flags.DEFINE_bool("kinds", False, "the kinds alone that most kernels are not of")
_LIBRARY = flags.DEFINE_string("library", None, "libaiter_attn.so, to be checked by its C ABI")
_CLUSTERS = flags.DEFINE_bool("clusters", True, "kernels for this device; else for sm_80")
_PROCESSES = flags.DEFINE_integer("processes", 14, "that compile", lower_bound=1)

F64 = torch.float64
# Half a unit in the last place, and the spacing of the subnormals.
ROUNDING = {
    F: (2.0**-24, 0.0),
    B: (2.0**-8, 2.0**-133),
    H: (2.0**-11, 2.0**-24),
    E4: (2.0**-4, 2.0**-9),
    E5: (2.0**-3, 2.0**-16),
}
FLOAT32_SLACK = 1e-5  # of the largest element of the row, for arithmetic in float32
LEAST_SCALE = 2.0**-100  # of a row
EXPONENT_BIAS = 127  # of E8M0


def prepare(case: Case, device: Device):
    """The configuration, source and macros of a case, as for `device`."""
    vector = case.vector()
    rows = Rows(
        case.operation,
        operations.span(case.hidden, vector, case.sums()),
        vector,
        case.types[0].itemsize,
        sum(t.itemsize for t in case.reads()),
        case.weight_bytes(),
        case.sums(),
        sixteen_bytes=all(vector * t.itemsize % 16 == 0 for t in case.reads()),
        shifted=case.hidden % vector > 0,
        largest_bytes=max(t.itemsize for t in case.reads()),
        count=case.count or case.rows,
        device=device,
    )
    (c,) = choose([rows])
    if case.operation.startswith("softmax"):
        macros = operations.softmax_macros(
            c, case.hidden, vector, case.types[0], case.mask, backward=case.backward
        )
        return c, "softmax.cpp", macros
    sums = not case.backward or case.wants_dgamma or case.wants_dbeta
    # As configure.cc changes its choice.
    if not sums:
        c = dataclasses.replace(c, few_rows=0)
    if case.scales == operations.BLOCK_SCALES and c.lanes * vector < operations.SCALE_BLOCK:
        lanes = operations.SCALE_BLOCK // vector
        c = dataclasses.replace(c, lanes=lanes, threads=max(c.threads, lanes))
    macros = operations.norm_macros(
        c,
        case.layer,
        case.hidden,
        vector,
        case.types,
        backward=case.backward,
        add=case.add,
        beta=case.has_beta and not case.backward,
        zero_centred=case.zero_centred,
        gamma=case.gamma,
        sums=sums,
        in_place=case.in_place and case.add,
        scales=case.scales,
    )
    source = operations.backward_source(c) if case.backward else "norm_forward.cpp"
    return c, source, macros


def compile_case(case: Case, device: Device) -> tuple[Configuration, bytes | str]:
    """A case's configuration and its machine code, or why there is none."""
    c, source, macros = prepare(case, device)
    try:
        return c, cuda.compile_cubin(source, macros)
    except cuda.CompileError as error:
        return c, str(error)


class Failure(Exception):
    """A difference between a kernel's results and the reference."""


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
    bad = ~exact & ~(want.isfinite() & ((got64 - want).abs() <= allowed))
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
        elif i == 8:
            row.fill_(30000.123)


def row_slack(want: torch.Tensor, factor: torch.Tensor | float = 1.0) -> torch.Tensor:
    largest = torch.where(want.isfinite(), want.abs(), 0).amax(-1, keepdim=True)
    return FLOAT32_SLACK * largest * factor


def norm_reference(case: Case, x: torch.Tensor, epsilon: float):
    """mean, rstd and the condition of the rows, in float64."""
    # Exact where all elements are equal: then nothing is left of any.
    first = x[:, :1].where(x[:, :1].isfinite(), 0)
    mean = first + (x - first).mean(-1, keepdim=True) if case.layer else torch.zeros_like(first)
    rstd = ((x - mean).square().mean(-1, keepdim=True) + epsilon).rsqrt()
    condition = torch.nan_to_num(x.abs().amax(-1, keepdim=True) * rstd, 1.0, 1.0).clamp(min=1)
    condition = torch.where((x != x[:, :1]).any(-1, keepdim=True), condition, 1.0)
    return mean, rstd, condition if case.layer else torch.ones_like(condition)


class Alone:
    """The kernels of one case, compiled and launched from here."""

    def __init__(self, case: Case, c: Configuration, cubin: bytes) -> None:
        module = cuda.Module(cubin)
        self.norm_forward = functools.partial(
            operations.norm_forward, module, c, most_groups=case.groups
        )
        self.norm_backward = functools.partial(operations.norm_backward, module, c)
        self.softmax_forward = functools.partial(
            operations.softmax_forward, module, c, most_groups=case.groups
        )
        self.softmax_backward = functools.partial(
            operations.softmax_backward, module, c, most_groups=case.groups
        )


Kernels = Alone | Library


def run_twice(run, out: torch.Tensor, restore: Callable[[], object] = lambda: None) -> None:
    """Rows do not depend on who takes them, and a launch leaves its counter ready for the next.
    `restore` puts back the inputs whose place outputs take."""
    run()
    torch.cuda.synchronize()
    first = out.clone()
    out.view(torch.uint8).fill_(0x5A)
    restore()
    run()
    torch.cuda.synchronize()
    if not torch.equal(out.view(torch.uint8), first.view(torch.uint8)):
        raise Failure("the output differs between two runs")
    if run.counter is not None and run.counter.any():
        raise Failure(f"the counter was left at {run.counter.tolist()}")


def largest_number(y: torch.Tensor) -> torch.Tensor:
    """Along the last dimension; NaN is no number."""
    return torch.where(y.isnan(), 0, y.abs()).amax(-1)


def block_exponents(largest: torch.Tensor, most: float) -> torch.Tensor:
    """As E8M0 has them, of the least powers of two by which `largest` is divided to be `most` or
    less."""
    fraction, exponent = torch.frexp(largest / most)  # a fraction from .5 to 1
    exponent = exponent - (fraction == 0.5).int() + EXPONENT_BIAS
    return torch.where(largest == 0, 0, exponent.clamp(0, 2 * EXPONENT_BIAS))


def no_scales(case: Case) -> torch.Tensor | None:
    """Memory for the scales that the pass makes, of which it makes none like these."""
    if case.scales == operations.ROW_SCALES:
        return torch.full((case.rows,), float("nan"), device="cuda")
    if case.scales == operations.BLOCK_SCALES:
        blocks = case.hidden // operations.SCALE_BLOCK
        return torch.full((case.rows, blocks), 255, dtype=torch.uint8, device="cuda")
    return None


def divided(
    case: Case, want: torch.Tensor, scales: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """y before its scales, and the slack, divided by the scales that the pass made, which are
    checked."""
    most = torch.finfo(case.types[2]).max
    of_rows = case.scales == operations.ROW_SCALES
    blocks = want.unflatten(-1, (-1, case.hidden if of_rows else operations.SCALE_BLOCK))
    largest = largest_number(blocks)
    if of_rows:
        right = (largest[:, 0] / most).clamp(min=LEAST_SCALE)
        compare("scales", scales, right, FLOAT32_SLACK * right)
        by = scales.to(F64)[:, None, None]
    else:
        # Two exponents are right where the largest is as near to a power as float32 errs.
        least = block_exponents(largest * (1 - FLOAT32_SLACK), most)
        greatest = block_exponents(largest * (1 + FLOAT32_SLACK), most)
        bad = (scales < least) | (scales > greatest)
        if bad.any():
            i = tuple(bad.nonzero()[0].tolist())
            raise Failure(
                f"exponents: {int(bad.sum())} of {bad.numel()} wrong, first at {list(i)}:"
                f" {scales[i].item()}, not {least[i].item()}, of {largest[i].item()!r}"
            )
        by = torch.exp2(scales.to(F64) - EXPONENT_BIAS)[..., None]
    slack = (row_slack(blocks) / by).expand_as(blocks)
    return (blocks / by).flatten(1), slack.flatten(1)


def run_norm_forward(case: Case, kernels: Kernels) -> None:
    xt, wt, yt = case.types
    x = torch.randn(case.rows, case.hidden, device="cuda")
    hard_rows(x, xt)
    x = matrix(case, xt, x)
    w = torch.randn(case.hidden, device="cuda").to(wt) if case.gamma else None
    b = torch.randn(case.hidden, device="cuda").to(wt) if case.has_beta else None
    y = x if case.in_place and yt == xt else matrix(case, yt)
    mean, rstd = (torch.full((case.rows,), float("nan"), device="cuda") for _ in range(2))
    residual = matrix(case, xt, torch.randn_like(x, dtype=F)) if case.add else None
    total = residual if case.in_place or not case.add else matrix(case, xt)
    scale, amax, scales = None, None, no_scales(case)
    if yt in (E4, E5) and scales is None:
        scale, amax = torch.full((1,), 1.7, device="cuda"), torch.zeros(1, device="cuda")
    changed = [t for t in (x, residual) if t is not None] if case.in_place else []
    given = [t.clone() for t in changed]

    def restore() -> None:
        for t, values in zip(changed, given, strict=True):
            t.copy_(values)

    h = x.to(F64)
    if case.add:
        h = h + residual.to(F64)
    run_twice(
        kernels.norm_forward(x, w, b, y, mean, rstd, 1e-5, residual, total, scale, amax, scales),
        y,
        restore,
    )
    if case.add:
        compare("sum", total, h, 2.0**-23 * h.abs().nan_to_num(0, 0))
        unharmed(case, total)
        h = total.to(F64)
    m, r, condition = norm_reference(case, h, 1e-5)
    want = (h - m) * r
    if case.gamma:
        want = want * (w.to(F64) + case.zero_centred)
    if case.has_beta:
        want = want + b.to(F64)
    if case.layer:
        compare("mean", mean, m[:, 0], 1e-6 * torch.nan_to_num(h.abs().amax(-1), 0, 0))
    compare("rstd", rstd, r[:, 0], 2e-6 * (r * condition)[:, 0].nan_to_num(0, 0))
    slack = row_slack(want, condition)
    if amax is not None:
        largest = torch.where(want.isfinite(), want.abs(), 0).amax()
        if not abs(amax.item() - largest.item()) <= 1e-4 * largest.item():
            raise Failure(f"amax {amax.item()}, not {largest.item()}")
        want, slack = want * scale.item(), slack * 2
    if scales is not None:
        want, slack = divided(case, want, scales)
    compare("y", y, want, slack)
    unharmed(case, y)


def run_norm_backward(case: Case, kernels: Kernels) -> None:
    xt, wt, yt = case.types
    for hard in (False, True):
        x = torch.randn(case.rows, case.hidden, device="cuda") + 0.5
        if hard:
            hard_rows(x, xt)
        x = matrix(case, xt, x)
        dy = matrix(case, yt, torch.randn(case.rows, case.hidden, device="cuda"))
        dh = matrix(case, xt, torch.randn_like(x, dtype=F)) if case.add else None
        w = torch.randn(case.hidden, device="cuda").to(wt)
        dw, db = (torch.full_like(w, float("nan")) for _ in range(2))
        dw, db = dw if case.wants_dgamma else None, db if case.wants_dbeta else None
        factor = w.to(F64) + case.zero_centred if case.gamma else 1.0
        m, r, condition = norm_reference(case, x.to(F64), 1e-5)
        mean, rstd = m[:, 0].to(F), r[:, 0].to(F)
        m, r = mean.to(F64)[:, None], rstd.to(F64)[:, None]
        dx = matrix(case, xt)
        run = kernels.norm_backward(
            x, dy, w if case.gamma else None, mean if case.layer else None, rstd, dx, dw, db, dh
        )
        run()
        torch.cuda.synchronize()
        g = dy.to(F64)
        xhat = (x.to(F64) - m) * r
        wdy = g * factor
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
        if dw is not None:
            compare("dgamma", dw, terms.sum(0), FLOAT32_SLACK * uncertain.sum(0))
        if db is not None:
            compare("dbeta", db, g.sum(0), FLOAT32_SLACK * g.abs().sum(0))
        results = [t for t in (dx, dw, db) if t is not None]
        first = [t.clone() for t in results]
        run()
        torch.cuda.synchronize()
        if not all(map(torch.equal, first, results)):
            raise Failure("results differ between two runs")


def allowed_columns(case: Case) -> torch.Tensor:
    """(rows, hidden): whether the causal mask lets a column take part."""
    column = torch.arange(case.hidden, device="cuda")
    query = torch.arange(case.rows, device="cuda")[:, None] % case.queries
    return column <= query + case.hidden - case.queries


def run_softmax_forward(case: Case, kernels: Kernels) -> None:
    dtype, scale, repeat = case.types[0], 0.37, 3
    x = torch.randn(case.rows, case.hidden, device="cuda") * 3
    hard_rows(x, H)
    if case.rows > 15:
        x[14] += 30000
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
        # Row 5 has a NaN, which makes all of it NaN beside what is masked, too.
        at = 5 // case.queries // repeat, 5 % case.queries
        mask[at] = 1
        mask[(*at, case.hidden // 2)] = 0
        whole = mask.repeat_interleave(repeat, 0).reshape(case.rows, case.hidden)
        s = torch.where(whole == 1, -10000.0, s)
    allowed = allowed_columns(case) if case.mask == "causal" else torch.ones_like(s, dtype=bool)
    s = torch.where(allowed, s, -float("inf"))
    want = s.softmax(-1)
    if case.mask == "explicit":
        want = torch.where(s.amax(-1, keepdim=True) == -10000, 0.0, want)
    want = torch.where(allowed, want, 0.0)
    run_twice(
        kernels.softmax_forward(x, y, scale, case.queries, mask, repeat),
        y,
    )
    compare("y", y, want, row_slack(want) + 1e-5 * want.nan_to_num(0))
    unharmed(case, y)


def run_softmax_backward(case: Case, kernels: Kernels) -> None:
    dtype, scale = case.types[0], 0.37
    allowed = allowed_columns(case) if case.mask == "causal" else True
    s = torch.randn(case.rows, case.hidden, device="cuda", dtype=F64) * 3
    y = s.masked_fill(~allowed, -float("inf")) if case.mask == "causal" else s
    y = matrix(case, dtype, y.softmax(-1).nan_to_num(0))
    dy = matrix(case, dtype, torch.randn(case.rows, case.hidden, device="cuda"))
    dx = matrix(case, dtype)
    run_twice(kernels.softmax_backward(y, dy, dx, scale, case.queries), dx)
    y64, g = y.to(F64), dy.to(F64)
    want = scale * y64 * (g - (y64 * g).sum(-1, keepdim=True))
    compare("dx", dx, want, row_slack(want) + 1e-5 * y64.abs())
    unharmed(case, dx)


def run(case: Case, kernels: Kernels) -> None:
    torch.manual_seed(case.hidden)
    if case.operation == "softmax_forward":
        run_softmax_forward(case, kernels)
    elif case.operation == "softmax_backward":
        run_softmax_backward(case, kernels)
    elif case.backward:
        run_norm_backward(case, kernels)
    else:
        run_norm_forward(case, kernels)


def check_alone(chosen: Sequence[Case]) -> Iterator[str]:
    """The failures of the kernels, a line each."""
    context = multiprocessing.get_context("spawn")
    device = HOPPER if _CLUSTERS.value else AMPERE  # the processes have no flags
    with concurrent.futures.ProcessPoolExecutor(_PROCESSES.value, context) as pool:
        compiled = pool.map(functools.partial(compile_case, device=device), chosen, chunksize=2)
        # The context that the driver calls need: behind the start of all processes, as a process
        # that a sanitizer watches hangs when it starts another, and ahead of the end of their
        # compiles, for which no sanitizer waits.
        torch.zeros(1, device="cuda")
        for case, (c, cubin) in zip(chosen, compiled, strict=True):
            try:
                if isinstance(cubin, str):
                    raise Failure(cubin[:600])
                run(case, Alone(case, c, cubin))
            except (Failure, RuntimeError) as failure:
                yield f"{case}: {failure}"


def check_by_library(path: str, case: Case) -> str | None:
    try:
        run(case, Library(path, case.layer, case.zero_centred, case.mask))
    except (Failure, RuntimeError) as failure:
        return f"{case}: {failure}"
    return None


def check_library(path: str, chosen: Sequence[Case]) -> Iterator[str]:
    """The failures of the library, a line each. Every process compiles and runs its share."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(_PROCESSES.value, context) as pool:
        check = functools.partial(check_by_library, path)
        yield from filter(None, pool.map(check, chosen, chunksize=4))


def main(_argv: Sequence[str]) -> int:
    chosen = list((kinds if _KINDS.value else cases)(_SMALL.value))
    if _LIBRARY.value:
        if not _CLUSTERS.value:
            raise app.UsageError("--noclusters: the library chooses for its device; leave one out")
        # The library chooses the kernel and the number of clusters.
        chosen = [case for case in chosen if case.groups is None and case.count is None]
        wrong = check_library(_LIBRARY.value, chosen)
    else:
        wrong = check_alone(chosen)
    failed = 0
    for line in wrong:
        failed += 1
        print(line, flush=True)
    print(f"{len(chosen)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    app.run(main)
