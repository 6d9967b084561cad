# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The compiled shapes of kernels/norm, and launches of their kernels on an emulated device."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gfxemu import Checks, Device, LlvmMc, decoder
from gfxemu.checks import POISONS

from kernels.norm.configuration import Configuration, load_split
from tests.emulation.harness.structs import structures
from tests.emulation.norms.reference import TYPES

Array = np.ndarray
_STRUCTS = {
    "norm_forward": "NormForwardArguments",
    "norm_backward": "NormBackwardArguments",
    "norm_backward_long": "NormLongArguments",
    "norm_backward_reduce": "NormReduceArguments",
    "softmax_forward": "SoftmaxForwardArguments",
    "softmax_backward": "SoftmaxBackwardArguments",
}


@dataclasses.dataclass(frozen=True)
class Shape:
    """One code object: a source, its kernels with their threads, and its macros, for an arch."""

    name: str
    arch: str
    source: str
    kernels: Mapping[str, int] = dataclasses.field(hash=False, compare=False, repr=False)
    macros: Mapping[str, Any] = dataclasses.field(hash=False, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.name}-{self.arch}"

    def dtype(self, macro: str) -> str:
        return self.macros[macro]

    @property
    def hidden(self) -> int:
        return self.macros["ROW_HIDDEN"]

    @property
    def vector(self) -> int:
        return self.macros["ROW_VECTOR"]

    @property
    def layer(self) -> bool:
        return bool(self.macros["NORM_LAYER"])

    @property
    def configuration(self) -> Configuration:
        m = self.macros
        return Configuration(
            threads=m["ROW_THREADS"],
            lanes=m["ROW_LANES"],
            cluster=1,
            stages=0,
            ctas_per_sm=m["ROW_CTAS_PER_SM"],
            waves=1,
            keep_weights=m.get("NORM_KEEP_WEIGHTS", 0),
            hold_row=m["ROW_HOLD"],
            lag=m.get("NORM_LAG", 0),
            on_demand=0,
            few_rows=m.get("NORM_FEW_ROWS", 0),
        )

    def with_kernel(self, kernel: str) -> Shape:
        """The shape whose code object has a kernel: the one that sums norm_backward's parts is
        apart."""
        if kernel in self.kernels:
            return self
        columns = self.arch, self.macros["NORM_W"], self.hidden
        return next(
            s
            for s in shapes()
            if kernel in s.kernels and (s.arch, s.macros["NORM_W"], s.hidden) == columns
        )

    @property
    def is_split(self) -> bool:
        """Whether workgroups share each row."""
        return self.source == "norm_long"

    @property
    def slices(self) -> int:
        """Of a row that is split."""
        return load_split().slices(self.hidden)

    @property
    def rows_in_hand(self) -> int:
        """Of a workgroup."""
        return 1 if self.is_split else self.macros["ROW_THREADS"] // self.macros["ROW_LANES"]


@functools.cache
def shapes() -> tuple[Shape, ...]:
    """Those of the code objects that EMULATION_CODE_OBJECTS names."""
    known = json.loads(Path(os.environ["NORM_SHAPES"]).read_text())
    found = []
    for path in sorted(os.environ["EMULATION_CODE_OBJECTS"].split()):
        name, arch, _ = Path(path).name.split(".")
        found.append(Shape(name, arch, **known[name]))
    return tuple(found)


@functools.cache
def _code(shape: Shape) -> bytes:
    name = f"{shape.name}.{shape.arch}.hsaco"
    for path in os.environ["EMULATION_CODE_OBJECTS"].split():
        if Path(path).name == name:
            return Path(path).read_bytes()
    raise KeyError(name)


@functools.cache
def _device(arch: str) -> Device:
    return Device(arch, LlvmMc.from_environment())


def arguments_of(kernel: str) -> Any:
    """The struct of a kernel's arguments, all zero."""
    path = Path(os.environ["NORM_ARGUMENTS"])
    return structures(path, tuple(_STRUCTS.values()))[list(_STRUCTS).index(kernel)]()


def barriers(shape: Shape, kernel: str) -> list[int]:
    """Where a kernel has its barriers."""
    _, program = _device(shape.arch).program(_code(shape.with_kernel(kernel)), kernel)
    return [i.index for i in program.instructions if i.name == "s_barrier"]


class Overwritten(Exception):
    """A kernel changed memory that is not its output."""


class Run:
    """Arrays on a device, and launches on them.

    A gap follows each row of a matrix: of NaNs in inputs, of unwritten memory in outputs. A read of
    the first poisons a result, a write to the second is seen. `without` leaves an instruction out
    of a kernel.
    """

    def __init__(self, shape: Shape, schedule: str, without: tuple[str, int] | None = None) -> None:
        self.shape, self._schedule, self._without = shape, schedule, without
        self._device = _device(shape.arch)
        self._addresses: dict[int, str] = {}
        self._kept: list[tuple[str, Array, Array]] = []
        self._outputs: dict[str, list[int]] = {}  # kernel -> what it writes
        self._gap = 2 * shape.vector

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        for address in self._addresses:
            self._device.memory.unregister(address)

    def _register(self, array: Array, name: str) -> int:
        address = self._device.memory.register(array, name)
        self._addresses[address] = name
        return address

    def vector(self, name: str, values: Array) -> int:
        """An input without gaps; its address."""
        array = np.ascontiguousarray(values).copy()
        self._kept.append((name, array, array.copy()))
        return self._register(array, name)

    def place(self, name: str, array: Array) -> tuple[int, Array]:
        """Registers an array that a kernel reads and writes; its address and itself."""
        return self._register(array, name), array

    def matrix(self, name: str, values: Array) -> tuple[int, int]:
        """An input; its address and its stride in elements."""
        rows, columns = values.shape
        whole = np.full((rows, columns + self._gap), np.nan).astype(values.dtype)
        whole[:, :columns] = values
        return self.vector(name, whole), columns + self._gap

    def changed_matrix(self, name: str, values: Array) -> tuple[int, int, Array]:
        """An input whose rows a kernel overwrites; address, stride, and the array with gaps."""
        rows, columns = values.shape
        whole = np.zeros((rows, columns + self._gap), values.dtype)
        # The same bytes between rows as in an output: result() looks at them.
        words = whole.view(np.uint8)
        words[:] = np.resize(np.array([POISONS[-1]], np.uint32).view(np.uint8), words.shape)
        whole[:, :columns] = values
        return self._register(whole, name), columns + self._gap, whole

    def output(
        self, kernel: str, name: str, shape: tuple[int, ...], dtype: str
    ) -> tuple[int, Array]:
        """Makes an output of `kernel` without gaps; its address and itself."""
        array = np.zeros(shape, TYPES[dtype])
        address = self._register(array, name)
        self._outputs.setdefault(kernel, []).append(address)
        return address, array

    def output_matrix(
        self, kernel: str, name: str, rows: int, dtype: str
    ) -> tuple[int, int, Array]:
        """Makes an output of `kernel` with gaps; address, stride, and the array with them."""
        stride = self.shape.hidden + self._gap
        address, array = self.output(kernel, name, (rows, stride), dtype)
        return address, stride, array

    def result(self, array: Array) -> Array:
        """The rows of an output with gaps. Raises Overwritten."""
        got = array.view(np.uint8)
        poison = np.array([POISONS[-1]], np.uint32).view(np.uint8)
        gap = self.shape.hidden * array.itemsize
        if not np.array_equal(got[:, gap:], np.resize(poison, got.shape)[:, gap:]):
            raise Overwritten("a kernel wrote between rows")
        return array[:, : self.shape.hidden]

    def launch(
        self, kernel: str, arguments: Any, grid: tuple[int, int], dynamic_lds: int = 0
    ) -> None:
        """Runs a kernel with all checks. Raises EmulationError for any finding, and Overwritten."""
        shape = self.shape.with_kernel(kernel)
        loaded, program = self._device.program(_code(shape), kernel)
        if self._without is not None and self._without[0] == kernel:
            program = decoder.replace(program, self._without[1], None)
        report = self._device.launch(
            loaded,
            program,
            grid=(*grid, 1),
            block=(shape.kernels[kernel], 1, 1),
            kernarg=bytes(arguments),
            dynamic_lds=dynamic_lds,
            schedule=self._schedule,
            checks=Checks(),
            uninitialised=self._outputs.pop(kernel, ()),
        )
        report.raise_findings()
        for name, array, before in self._kept:
            if not np.array_equal(array.view(np.uint8), before.view(np.uint8)):
                raise Overwritten(f"{kernel} changed {name}")

    def launch_rows(self, kernel: str, arguments: Any, groups: int, dynamic_lds: int = 0) -> None:
        """Workgroups that sum columns come ahead of those that take rows."""
        columns = self.shape.configuration.few_rows * self.shape.vector
        blocks = -(-self.shape.hidden // columns) if columns else 0
        self.launch(kernel, arguments, (blocks + groups, 1), dynamic_lds)

    def launch_split(self, arguments: Any, parts: int) -> None:
        """Both kernels of norm_long.cpp."""
        for kernel in ("norm_backward_slices", "norm_backward_long"):
            self.launch(kernel, arguments, (self.shape.slices, parts))

    def launch_reduce(self, arguments: Any, sums: int) -> None:
        kernel = "norm_backward_reduce"
        shape = self.shape.with_kernel(kernel)
        lanes = shape.kernels[kernel] // arguments.side
        columns = lanes * (4 if shape.vector % 4 == 0 else 1)
        self.launch(kernel, arguments, (-(-shape.hidden // columns), sums))


def set_pointer(struct: Any, field: str, address: int, stride: int | None = None) -> None:
    """A pointer, or a Matrix where there is a stride."""
    if stride is None:
        setattr(struct, field, address)
    else:
        matrix = getattr(struct, field)
        matrix.data, matrix.stride = address, stride
