# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The sums that aiter::mha_bwd leaves to its caller, by kernels of the caller's behind its backward
calls: dk and dv of key heads, and the gradient of a bias that serves several scores."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from tests.consumers.attention import Attention, Consumer, Layout
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulation.harness.reference import Array, Expected, from_storage, gradients, reference
from tests.emulation.verify.verdict import GATES
from tests.emulator.hip.hip import DTYPES, DeviceArray, Hip

_OBJECTS = {Path(path).name: Path(path) for path in os.environ["OBJECTS"].split()}
_WINDOW = {"mask": MASK_BOTTOM_RIGHT, "window": (-1, 0)}
_BLOCK = 256


def launch(hip: Hip, arch: str, name: str, arguments: bytes, count: int, stream: int) -> None:
    """A kernel of ck_fused_attn_sums.cc, with a thread for each of `count` numbers."""
    code = _OBJECTS[f"ck_fused_attn_sums.{arch}.co"].read_bytes()
    module = hip.made("hipModuleLoadData", code)
    function = hip.made("hipModuleGetFunction", module, name.encode())
    grid = (-(-count // _BLOCK), 1, 1)
    hip.launch(function, grid, (_BLOCK, 1, 1), arguments, stream)
    hip.synchronize(stream)


def sum_groups(
    hip: Hip, arch: str, dtype: str, whole: DeviceArray, groups: int, stream: int
) -> Array:
    """Bits [tokens][groups][size] of an array [..., heads, size]."""
    heads, size = whole.shape[-2:]
    tokens = whole.array.size // (heads * size)
    out = hip.empty((tokens, groups, size), whole.dtype, stream, whole.device)
    arguments = struct.pack(
        "<QQqii", whole.array.ctypes.data, out.array.ctypes.data, out.array.size, heads // groups,
        size,
    )  # fmt: skip
    launch(hip, arch, f"sum_groups_{dtype}", arguments, out.array.size, stream)
    return np.ascontiguousarray(out.read()).view(np.uint16)


def check(name: str, expected: Expected, bits: Array, dtype: str) -> None:
    error = expected.error(from_storage(bits, dtype))
    assert GATES["o"].allows(error.rms, error.largest), f"{name}: {error}"


@pytest.mark.parametrize("heads", [(4, 2), (3, 1)], ids=str)
def test_key_heads(hip: Hip, consumer: Consumer, arch: str, heads: tuple[int, int]) -> None:
    case = Case("", ((33, 47), (70, 40)), *heads, **_WINDOW)
    problem = Attention(hip, consumer, arch, case, Layout(True))
    assert problem.forward() == 0
    assert problem.backward() == 0
    whole = reference(case, problem.dtype, problem.inputs, problem.results()["o"])
    expected = gradients(case, problem.dtype, whole)
    for name in ("dk", "dv"):
        found = sum_groups(
            hip, arch, problem.dtype, problem.tensors[name], heads[1], problem.stream
        )
        check(name, expected[name], found, problem.dtype)


@pytest.mark.parametrize("entries", ["", "h", "b", "bh"], ids=lambda x: x or "one")
def test_bias(hip: Hip, consumer: Consumer, arch: str, entries: str) -> None:
    case = Case("", ((33, 47), (33, 47)), 2, 2, bias="elementwise", **_WINDOW)
    problem = Attention(hip, consumer, arch, case, Layout(bias=entries))
    assert problem.forward() == 0
    assert problem.backward() == 0
    dbias = problem.tensors["dbias"]
    batch, heads, rows, columns = dbias.shape
    shape = (batch if "b" in entries else 1, heads if "h" in entries else 1, rows, columns)
    out = hip.empty(shape, dbias.dtype, problem.stream, dbias.device)
    arguments = struct.pack(
        "<QQiiiii", dbias.array.ctypes.data, out.array.ctypes.data, batch, heads, *shape[:2],
        rows * columns,
    )  # fmt: skip
    launch(hip, arch, "sum_bias_fp16", arguments, out.array.size, problem.stream)
    bits = np.ascontiguousarray(out.read()).view(np.uint16)

    of_all = reference(case, problem.dtype, problem.inputs, problem.results()["o"])["dbias"]
    value, unit = (
        x[:, :, :columns].reshape(heads, batch, rows, columns).swapaxes(0, 1)
        for x in (of_all.value, of_all.unit)
    )
    axes = tuple(axis for axis, count in enumerate(shape[:2]) if count == 1)
    total = value.sum(axes, keepdims=True)
    # Rounded once more, as each of the numbers was.
    error = np.sqrt((unit * unit).sum(axes, keepdims=True) + (total * 2.0**-11) ** 2)
    check("dbias", Expected(total, error), bits, problem.dtype)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_bf16(hip: Hip, arch: str) -> None:
    """Sums of two are right to half a unit of the last place, ties to even."""
    device = hip.device_of(arch)
    hip.make_current(device)
    stream = hip.stream()
    bits = np.random.default_rng(5).integers(0x3C00, 0x4200, (37, 4, 64)).astype(np.uint16)
    bits[::3] |= 0x8000
    whole = hip.array(bits.view(DTYPES["bfloat16"]), stream, device)
    found = sum_groups(hip, arch, "bf16", whole, 2, stream)
    exact = from_storage(bits, "bf16").reshape(37, 2, 2, 64).sum(2).astype(np.float32)
    as_bits = exact.view(np.uint32)
    rounded = (as_bits + 0x7FFF + (as_bits >> 16 & 1)) >> 16
    np.testing.assert_array_equal(found, rounded.astype(np.uint16))


def test_every_source_is_compiled_in_all_passes() -> None:
    stems = ("ck_fused_attn_bwd", "ck_fused_attn_fwd", "ck_fused_attn_sums")
    suffixes = ("gfx942.co", "gfx950.co", "host.o")
    assert set(_OBJECTS) == {f"{stem}.{suffix}" for stem in stems for suffix in suffixes}
    for path in _OBJECTS.values():
        assert path.read_bytes()[:4] == b"\x7fELF"
