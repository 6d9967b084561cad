# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The kernels of kernels/norm on torch tensors: macros, launch arguments and grids."""

from __future__ import annotations

import ctypes
import functools
from ctypes import c_float, c_int, c_longlong, c_void_p

import torch

from kernels.norm.configuration import Configuration, load_split
from tests.bench.norms.cuda import Kernel, Module, compile_cubin

TYPE_NAMES = {
    torch.float32: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "fp8_e4m3",
    torch.float8_e5m2: "fp8_e5m2",
}
MASKS = ("none", "explicit", "causal")
COLUMNS_THREADS = 256  # norm_columns.cpp
MOST_SIDE = 32  # launch.cc: threads that share a column's parts
NO_SCALES, ROW_SCALES, BLOCK_SCALES = range(3)  # NORM_SCALES
SCALE_BLOCK = 32  # columns
SHORT_ELEMENTS = 1 << 23  # configure.h: is_short


class Matrix(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("stride", c_longlong)]


class NormForwardArguments(ctypes.Structure):
    _fields_ = [
        ("x", Matrix),
        ("residual", Matrix),
        ("y", c_void_p),
        ("y_stride", c_longlong),
        ("sum", c_void_p),
        ("sum_stride", c_longlong),
        ("gamma", c_void_p),
        ("beta", c_void_p),
        ("mean", c_void_p),
        ("rstd", c_void_p),
        ("scale", c_void_p),
        ("amax", c_void_p),
        ("rows", c_int),
        ("epsilon", c_float),
        ("groups", c_int),
        ("counter", c_void_p),
    ]


class NormBackwardArguments(ctypes.Structure):
    _fields_ = [
        ("x", Matrix),
        ("dy", Matrix),
        ("dh", Matrix),
        ("dx", c_void_p),
        ("dx_stride", c_longlong),
        ("gamma", c_void_p),
        ("mean", c_void_p),
        ("rstd", c_void_p),
        ("dgamma", c_void_p),
        ("dbeta", c_void_p),
        ("rows", c_int),
        ("groups", c_int),
    ]


class NormLongArguments(ctypes.Structure):
    _fields_ = [
        ("x", Matrix),
        ("dy", Matrix),
        ("dh", Matrix),
        ("dx", c_void_p),
        ("dx_stride", c_longlong),
        ("gamma", c_void_p),
        ("mean", c_void_p),
        ("rstd", c_void_p),
        ("slices", c_void_p),
        ("dgamma_parts", c_void_p),
        ("dbeta_parts", c_void_p),
        ("rows", c_int),
        ("rows_per_part", c_int),
    ]


class NormReduceArguments(ctypes.Structure):
    _fields_ = [
        ("parts", c_void_p * 2),
        ("sum", c_void_p * 2),
        ("count", c_int),
        ("side", c_int),
    ]


class SoftmaxForwardArguments(ctypes.Structure):
    _fields_ = [
        ("x", Matrix),
        ("y", c_void_p),
        ("y_stride", c_longlong),
        ("mask", c_void_p),
        ("queries", c_int),
        ("mask_repeat", c_int),
        ("rows", c_int),
        ("scale", c_float),
        ("groups", c_int),
        ("counter", c_void_p),
    ]


class SoftmaxBackwardArguments(ctypes.Structure):
    _fields_ = [
        ("y", Matrix),
        ("dy", Matrix),
        ("dx", c_void_p),
        ("dx_stride", c_longlong),
        ("queries", c_int),
        ("rows", c_int),
        ("scale", c_float),
        ("groups", c_int),
        ("counter", c_void_p),
    ]


def _matrix(t: torch.Tensor | None) -> Matrix:
    return Matrix(t.data_ptr(), t.stride(0)) if t is not None else Matrix(None, 0)


def _pointer(t: torch.Tensor | None) -> int | None:
    return t.data_ptr() if t is not None else None


def vector_for(hidden: int, *tensors: torch.Tensor | None) -> int:
    """Columns that a thread can move at once: 16 bytes of the narrowest input, or fewer."""
    present = [t for t in tensors if t is not None]
    vector = 16 // min(max(t.element_size(), 2) for t in present)
    while vector > 1 and (
        hidden % vector
        or any(
            t.data_ptr() % min(16, vector * t.element_size())
            or (t.dim() > 1 and t.stride(0) * t.element_size() % min(16, vector * t.element_size()))
            for t in present
        )
    ):
        vector //= 2
    return vector


def span(hidden: int, vector: int, sums: int = 0) -> int:
    """Columns of all vectors of memory of a row: more than the row's where no vector divides it.
    norm_backward, which has sums, takes the row's own."""
    return hidden + (vector - 1 if hidden % vector and not sums else 0)


def columns_vector(hidden: int, vector: int) -> int:
    """As norm_columns.cpp takes the columns of norm_backward's rows."""
    return 1 if hidden % vector else vector


def shifted_vector(hidden: int, *tensors: torch.Tensor | None) -> int:
    """As vector_for; rows that no vector divides take whole ones all the same, where all matrices
    have theirs at the same columns."""
    present = [t for t in tensors if t is not None]
    whole = 16 // min(max(t.element_size(), 2) for t in present)
    places = {
        (t.data_ptr() // t.element_size() % whole, t.stride(0) % whole)
        for t in present
        if t.dim() > 1
    }
    if hidden % whole and hidden > whole and len(places) == 1:
        return whole
    return vector_for(hidden, *tensors)


def softmax_ring_bytes(c: Configuration, *tensors: torch.Tensor) -> int:
    """Of one matrix."""
    hidden = tensors[0].shape[1]
    vector = shifted_vector(hidden, *tensors)
    return c.ring_bytes(span(hidden, vector), vector, tensors[0].element_size())


def grid_groups(kernel: Kernel, c: Configuration, rows: int, most_groups: int | None) -> int:
    """Clusters to launch: as many as the device holds, or one for every row in hand. Clusters that
    stay can be fewer: `most_groups`."""
    most = -(-rows // (c.threads // c.lanes))
    if not c.waves:
        return most
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    held = kernel.resident_clusters(c.cluster, sms)
    if held == 0:
        raise RuntimeError("the device cannot hold a cluster of this kernel")
    return min(most, held * c.waves, most_groups or most)


def is_short(rows: int, hidden: int) -> bool:
    """Whether a launch may start before the work ahead of it has ended, for which it waits
    itself."""
    return rows * hidden <= SHORT_ELEMENTS


def turn_counter() -> torch.Tensor:
    """The counter of a launch of rows on demand; launches that may overlap need one each."""
    return torch.zeros(2, dtype=torch.int32, device="cuda")


def norm_macros(
    c: Configuration,
    layer: bool,
    hidden: int,
    vector: int,
    types: tuple[torch.dtype, torch.dtype, torch.dtype],
    *,
    backward: bool,
    add: bool = False,
    beta: bool = False,
    zero_centred: bool = False,
    gamma: bool = True,
    sums: bool = True,
    in_place: bool = False,
    scales: int = NO_SCALES,
) -> dict[str, object]:
    """Macros of norm_forward.cpp or, backward, backward_source(c); `types` are of x, gamma and y.
    `in_place`: the sum takes the residual's place; `sums`: of gamma and beta, backward."""
    x, w, y = (TYPE_NAMES[t] for t in types)
    if c.split:
        macros: dict[str, object] = {
            "ROW_HIDDEN": hidden,
            "ROW_VECTOR": columns_vector(hidden, vector),
        }
    else:
        macros = c.macros(hidden, vector) | {"NORM_KEEP_WEIGHTS": c.keep_weights}
    macros |= {
        "NORM_LAYER": int(layer),
        "NORM_X": x,
        "NORM_W": w,
        "NORM_Y": y,
        "NORM_ADD": int(add),
        "NORM_ZERO_CENTRED": int(zero_centred),
    }
    # Most kernels are without these.
    if not gamma:
        macros["NORM_GAMMA"] = 0
    if not sums:
        macros["NORM_SUMS"] = 0
    if c.split:
        return macros
    columns = span(hidden, vector)
    if in_place and c.stages == 0 and not (c.hold_row and c.resident(columns, vector)):
        macros["NORM_IN_PLACE"] = 1  # memory is read twice
    if scales != NO_SCALES:
        macros["NORM_SCALES"] = scales
    if backward:
        return macros | {"NORM_LAG": c.lag, "NORM_FEW_ROWS": c.few_rows}
    return macros | {"NORM_BETA": int(beta)}


def backward_source(c: Configuration) -> str:
    return "norm_long.cpp" if c.split else "norm_backward.cpp"


def columns_macros(hidden: int, vector: int, weight: torch.dtype) -> dict[str, object]:
    """Macros of norm_columns.cpp; `weight`: of gamma and its gradient."""
    return {"ROW_HIDDEN": hidden, "ROW_VECTOR": vector, "NORM_W": TYPE_NAMES[weight]}


@functools.cache
def columns_module(macros: tuple[tuple[str, object], ...]) -> Module:
    """norm_columns.cpp, compiled and loaded."""
    return Module(compile_cubin("norm_columns.cpp", dict(macros)))


def softmax_macros(
    c: Configuration, hidden: int, vector: int, dtype: torch.dtype, mask: str, *, backward: bool
) -> dict[str, object]:
    return c.macros(hidden, vector) | {
        "SOFTMAX_BACKWARD": int(backward),
        "SOFTMAX_X": TYPE_NAMES[dtype],
        "SOFTMAX_MASK": MASKS.index(mask),
    }


def stream() -> int:
    return torch.cuda.current_stream().cuda_stream


def norm_forward(
    module: Module,
    c: Configuration,
    x: torch.Tensor,
    gamma: torch.Tensor | None,
    beta: torch.Tensor | None,
    y: torch.Tensor,
    mean: torch.Tensor | None,
    rstd: torch.Tensor | None,
    epsilon: float = 1e-6,
    residual: torch.Tensor | None = None,
    total: torch.Tensor | None = None,
    scale: torch.Tensor | None = None,
    amax: torch.Tensor | None = None,
    scales: torch.Tensor | None = None,
    most_groups: int | None = None,
):
    """A function that launches the forward kernel on these tensors; `scales`: of rows or blocks,
    which the kernel makes."""
    rows, hidden = x.shape
    vector = shifted_vector(hidden, x, gamma, beta, y, residual, total)
    columns = span(hidden, vector)
    matrices = 2 if residual is not None else 1
    shared = c.ring_bytes(columns, vector, matrices * x.element_size())
    weight = gamma if gamma is not None else beta
    weight_bytes = weight.element_size() if weight is not None else 0
    if beta is not None:
        weight_bytes *= 2  # gamma has its place in any case
    shared += c.weights_bytes(columns, vector, weight_bytes)
    kernel = Kernel(module, "norm_forward", c.threads, shared)
    groups = grid_groups(kernel, c, rows, most_groups)
    counter = turn_counter() if c.on_demand else None
    arguments = NormForwardArguments(
        _matrix(x),
        _matrix(residual),
        y.data_ptr(),
        y.stride(0),
        _pointer(total),
        total.stride(0) if total is not None else 0,
        _pointer(gamma),
        _pointer(beta),
        _pointer(mean),
        _pointer(rstd),
        _pointer(scale),
        _pointer(amax if scales is None else scales),
        rows,
        epsilon,
        groups,
        _pointer(counter),
    )
    run = kernel.launcher((groups * c.cluster, 1), arguments, stream(), is_short(rows, hidden))
    run.kernel, run.counter = kernel, counter
    return run


def norm_backward(
    module: Module,
    c: Configuration,
    x: torch.Tensor,
    dy: torch.Tensor,
    gamma: torch.Tensor | None,
    mean: torch.Tensor | None,
    rstd: torch.Tensor,
    dx: torch.Tensor,
    dgamma: torch.Tensor | None,
    dbeta: torch.Tensor | None = None,
    dh: torch.Tensor | None = None,
):
    """A function that launches the backward kernels on these tensors; `mean`: LayerNorm's."""
    hidden = x.shape[1]
    vector = shifted_vector(hidden, x, gamma, dy, dx, dh, dgamma, dbeta)
    sums = 2 if mean is not None else 1
    weight = dgamma if dgamma is not None else dbeta
    given = (x, dy, gamma, mean, rstd, dx, dh)
    if c.split:
        parts, storage, kernel, run_rows = _split_rows(module, weight is not None, *given)
    else:
        element_bytes = x.element_size() * (2 if dh is not None else 1) + dy.element_size()
        combine = c.combine_bytes(hidden, vector, sums)
        beyond = vector if hidden % vector else 0
        shared = max(c.ring_bytes(hidden, vector, element_bytes, beyond), combine)
        kernel = Kernel(module, "norm_backward", c.threads, shared)
        parts, storage, run_rows = _whole_rows(kernel, c, vector, dgamma, dbeta, *given)
    if weight is None or c.few_rows:
        run_rows.kernel = kernel
        return run_rows
    vector = columns_vector(hidden, vector)
    columns = columns_module(tuple(columns_macros(hidden, vector, weight.dtype).items()))
    side = 1
    while side < min(parts, MOST_SIDE):
        side *= 2
    wanted = [(part, to) for part, to in ((0, dgamma), (-1, dbeta)) if to is not None]
    reduce = NormReduceArguments(
        (c_void_p * 2)(*[storage[part].data_ptr() for part, _ in wanted]),
        (c_void_p * 2)(*[to.data_ptr() for _, to in wanted]),
        parts,
        side,
    )
    lanes = COLUMNS_THREADS // side * (4 if vector % 4 == 0 else 1)
    run_reduce = Kernel(columns, "norm_backward_reduce", COLUMNS_THREADS).launcher(
        (-(-hidden // lanes), len(wanted)), reduce, stream(), dependent=not c.split
    )

    def run(keep: torch.Tensor | None = storage) -> None:
        run_rows()
        run_reduce()

    run.kernel = kernel
    return run


def _whole_rows(
    kernel: Kernel,
    c: Configuration,
    vector: int,
    dgamma: torch.Tensor | None,
    dbeta: torch.Tensor | None,
    x: torch.Tensor,
    dy: torch.Tensor,
    gamma: torch.Tensor | None,
    mean: torch.Tensor | None,
    rstd: torch.Tensor,
    dx: torch.Tensor,
    dh: torch.Tensor | None,
):
    """(parts of the sums, their memory, a launch of norm_backward.cpp); without memory of parts the
    kernel makes all sums that are wanted."""
    rows, hidden = x.shape
    groups = grid_groups(kernel, c, rows, None)
    ctas, storage = 0, None
    to = _pointer(dgamma), _pointer(dbeta)
    if c.few_rows:
        ctas = -(-hidden // (c.few_rows * vector))
        ctas += -ctas % c.cluster
    elif dgamma is not None or dbeta is not None:
        storage = torch.empty(2 if mean is not None else 1, groups, hidden, device=x.device)
        to = storage[0].data_ptr(), storage[-1].data_ptr()
    arguments = NormBackwardArguments(
        _matrix(x),
        _matrix(dy),
        _matrix(dh),
        dx.data_ptr(),
        dx.stride(0),
        _pointer(gamma),
        _pointer(mean),
        rstd.data_ptr(),
        *to,
        rows,
        groups,
    )
    grid = (ctas + groups * c.cluster, 1)
    return (
        groups,
        storage,
        kernel.launcher(grid, arguments, stream(), is_short(rows, hidden)),
    )


def _split_rows(
    module: Module,
    makes_sums: bool,
    x: torch.Tensor,
    dy: torch.Tensor,
    gamma: torch.Tensor | None,
    mean: torch.Tensor | None,
    rstd: torch.Tensor,
    dx: torch.Tensor,
    dh: torch.Tensor | None,
):
    """(parts of the sums, their memory, a kernel, a launch of both kernels of norm_long.cpp)"""
    rows, hidden = x.shape
    sums = 2 if mean is not None else 1
    division = load_split()
    count = division.slices(hidden)
    parts, per_part = division.parts(rows, hidden)
    storage = torch.empty(sums, parts, hidden, device=x.device) if makes_sums else None
    slices = torch.empty(rows, count, sums, device=x.device)
    arguments = NormLongArguments(
        _matrix(x),
        _matrix(dy),
        _matrix(dh),
        dx.data_ptr(),
        dx.stride(0),
        _pointer(gamma),
        _pointer(mean),
        rstd.data_ptr(),
        slices.data_ptr(),
        storage[0].data_ptr() if makes_sums else None,
        storage[-1].data_ptr() if makes_sums else None,
        rows,
        per_part,
    )
    kernels = [
        Kernel(module, f"norm_backward_{name}", COLUMNS_THREADS) for name in ("slices", "long")
    ]
    launches = [kernel.launcher((count, parts), arguments, stream()) for kernel in kernels]

    def run(keep: torch.Tensor = slices) -> None:
        for launch in launches:
            launch()

    return parts, storage, kernels[-1], run


def softmax_forward(
    module: Module,
    c: Configuration,
    x: torch.Tensor,
    y: torch.Tensor,
    scale: float = 1.0,
    queries: int = 1,
    mask: torch.Tensor | None = None,
    mask_repeat: int = 1,
    most_groups: int | None = None,
):
    """A function that launches the forward kernel on these tensors."""
    rows, hidden = x.shape
    shared = softmax_ring_bytes(c, x, y)
    kernel = Kernel(module, "softmax_forward", c.threads, shared)
    groups = grid_groups(kernel, c, rows, most_groups)
    counter = turn_counter() if c.on_demand else None
    arguments = SoftmaxForwardArguments(
        _matrix(x),
        y.data_ptr(),
        y.stride(0),
        _pointer(mask),
        queries,
        mask_repeat,
        rows,
        scale,
        groups,
        _pointer(counter),
    )
    run = kernel.launcher((groups * c.cluster, 1), arguments, stream(), is_short(rows, hidden))
    run.kernel, run.counter = kernel, counter
    return run


def softmax_backward(
    module: Module,
    c: Configuration,
    y: torch.Tensor,
    dy: torch.Tensor,
    dx: torch.Tensor,
    scale: float = 1.0,
    queries: int = 1,
    most_groups: int | None = None,
):
    """A function that launches the backward kernel on these tensors."""
    rows, hidden = y.shape
    kernel = Kernel(module, "softmax_backward", c.threads, 2 * softmax_ring_bytes(c, y, dy, dx))
    groups = grid_groups(kernel, c, rows, most_groups)
    counter = turn_counter() if c.on_demand else None
    arguments = SoftmaxBackwardArguments(
        _matrix(y),
        _matrix(dy),
        dx.data_ptr(),
        dx.stride(0),
        queries,
        rows,
        scale,
        groups,
        _pointer(counter),
    )
    run = kernel.launcher((groups * c.cluster, 1), arguments, stream(), is_short(rows, hidden))
    run.kernel, run.counter = kernel, counter
    return run
