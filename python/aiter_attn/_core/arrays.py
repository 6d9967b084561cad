# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The arrays of one call of attention: borrowed from the caller, made for it, checked."""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple

from aiter_attn import _C
from aiter_attn._core import problems, reading
from aiter_attn._core.adapters import Array, adapter_of
from aiter_attn._core.adapters.generic import (
    DEFAULT_STREAM,
    SAME_STREAM,
    check_contiguous,
    check_rows,
    device_name,
)

__all__ = ["Arrays", "Part", "padded", "parts_of"]

# The library aligns the workspace itself.
_WORKSPACE_ALIGNMENT: Final = 256
_GREATEST_STREAM: Final = 2**64 - 1


class Part(NamedTuple):
    """One of the arrays that lie beside each other in another one: it stands for an argument."""

    name: str  # of the argument that has it
    whole: Array
    parts: int
    position: int


def parts_of(name: str, whole: Array, parts: int) -> Any:
    """The parts of one array, for functions that take separate arrays."""
    return [Part(name, whole, parts, position) for position in range(parts)]


class Arrays:
    """Every array that a call borrows, held as long as it lives, and where the call runs: on the
    device of q, on the stream that is given, or that q's framework works on."""

    # The functions that take an array which cannot be made, by the array's name.
    takers: ClassVar[dict[str, str]] = {}
    attention: problems.Attention  # its results' shapes, once they are known

    def __init__(self, q: Any, is_varlen: bool, stream: int | None) -> None:
        self._lead: Any = q.whole if isinstance(q, Part) else q
        self._lead_name = name = q.name if isinstance(q, Part) else "q"
        self._is_varlen = is_varlen
        self._adapter = adapter_of(name, self._lead)
        self._device = self._adapter.device(name, self._lead)
        # The stream that results are made on: None leaves them to the caller's current one.
        self._given_stream = stream
        # The stream that the work is queued on, None in host memory; and the stream for which q's
        # framework makes its arrays ready, if it produces them.
        self._stream, self._own_stream = self._choose_stream(stream)
        self._tensors: dict[str, _C.Tensor] = {}
        self._wholes: dict[str, _C.Tensor] = {}

    def no_probabilities(self) -> Any:
        """flash-attn's S_dmask, where there is no dropout."""
        made = self._adapter.empty("probs", self._lead, (0,), None, None)
        return self._adapter.result(made, self._lead)

    def _choose_stream(self, stream: int | None) -> tuple[int | None, int | None]:
        """(the stream, and the value by which q's framework knows it)"""
        if self._device[0] == _C.DEVICE_CPU:
            if stream is not None:
                raise ValueError("stream: the arrays are in host memory; pass stream=None")
            return None, None
        if self._device[0] != _C.DEVICE_ROCM:
            raise ValueError(
                f"{self._lead_name}: on {device_name(self._device)}; allowed: CPU (host memory) "
                "and ROCm (AMD GPUs); copy the arrays to one of them"
            )
        if stream is not None:
            stream = reading.integer(
                "stream", stream, _GREATEST_STREAM, "a hipStream_t as int, or None"
            )
            return stream, stream
        stream = self._adapter.current_stream(self._lead)
        if stream is None:
            return DEFAULT_STREAM, DEFAULT_STREAM
        return stream, SAME_STREAM  # the work is queued behind what made the array

    def _borrow(self, name: str, array: Any) -> _C.Tensor:
        tensor = self._borrow_part(array) if isinstance(array, Part) else self._lent(name, array)
        self._tensors[name] = tensor
        return tensor

    def _borrow_part(self, part: Part) -> _C.Tensor:
        name = part.name
        if name not in self._wholes:
            self._wholes[name] = self._lent(name, part.whole)
        whole = self._wholes[name]
        along = problems.check_packed(name, whole, part.parts, self._is_varlen)
        check_rows(name, whole)
        return whole.entry(along, part.position)

    def _lent(self, name: str, array: Any) -> _C.Tensor:
        adapter = adapter_of(name, array)
        device = adapter.device(name, array)
        if device != self._device:
            raise ValueError(
                f"{name}: on {device_name(device)}, but {self._lead_name} is on "
                f"{device_name(self._device)}; all arrays of a call are on one device"
            )
        stream = self._own_stream if adapter is self._adapter else self._stream
        return adapter.borrow(name, array, device, stream)

    def _borrow_if_given(self, name: str, array: Any) -> _C.Tensor | None:
        return None if array is None else self._borrow(name, array)

    def _check(
        self, name: str, tensor: _C.Tensor, want: problems.ShapeDtype, written: bool = False
    ) -> None:
        if _fits(tensor, want, written):
            return
        problems.check(name, tensor, want)
        (check_contiguous if name == "lse" else check_rows)(name, tensor)
        if written:
            _check_writable(name, tensor)

    def _output(self, name: str, given: Any) -> Any:
        """The array to write: the caller's, checked, or a new one."""
        want: problems.ShapeDtype = getattr(self.attention, name)
        if given is None:
            dtype = want.dtype if name in ("lse", "kept") else None
            adapter, like = self._adapter, self._lead
            try:
                made = adapter.empty(name, like, want.shape, dtype, self._given_stream)
                adapter.check_made(name, like, self._borrow(name, made), want.shape, want.dtype)
            except TypeError as error:
                raise TypeError(f"{error}; {self._to_pass(name, want)}") from error
            return made
        if not adapter_of(name, given).writable:
            raise ValueError(f"{name}: {type(given).__name__} is immutable; pass {name}=None")
        self._check(name, self._borrow(name, given), want, written=True)
        return given

    def _result(self, given: Any, made: Any) -> Any:
        return made if given is not None else self._adapter.result(made, self._lead)

    def _to_pass(self, name: str, want: problems.ShapeDtype) -> str:
        """The advice to a caller whose result cannot be made."""
        if name not in self.takers:
            return "pass numpy, torch, cupy or jax arrays"
        shape, takers = want.shape, self.takers[name]
        return f"pass {name}= with shape {shape} and dtype {want.dtype} to {takers}"

    def _borrow_workspace(self, given: Any, size: int) -> None:
        if given is None:
            if size == 0:
                return
            if not self._adapter.stream_ordered:
                to_do = (
                    f"pass workspace= of {padded(size)} bytes and keep it until the stream is done"
                    if "workspace" in self.takers
                    else "pass torch or cupy arrays"
                )
                raise TypeError(
                    f"workspace: when {type(self._lead).__name__} uses memory again is not known; "
                    f"{to_do}"
                )
            given = self._adapter.empty(
                "workspace", self._lead, (padded(size),), "uint8", self._given_stream
            )
        tensor = self._borrow("workspace", given)
        check_contiguous("workspace", tensor)
        _check_writable("workspace", tensor)
        room = tensor.size_bytes - -tensor.address % _WORKSPACE_ALIGNMENT
        if room < size:
            raise ValueError(
                f"workspace: {max(0, room)} bytes from a multiple of {_WORKSPACE_ALIGNMENT} on; "
                f"allowed here: {size} or more, which {padded(size)} bytes at any address have"
            )


def padded(size: int) -> int:
    """Bytes in which a workspace of that size finds room from any address."""
    return size + _WORKSPACE_ALIGNMENT - 1 if size > 0 else 0


def _fits(tensor: _C.Tensor, want: problems.ShapeDtype, written: bool) -> bool:
    """The usual case in one question; why not is another's to say. lse is all contiguous."""
    rank = len(want.shape) if want.dims[-1] in ("seqlen", "total tokens") else 1
    return tensor.fits(want.shape, want.dtype, rank, written)


def _check_writable(name: str, tensor: _C.Tensor) -> None:
    if tensor.read_only:
        raise ValueError(f"{name}: is read-only; pass a writable array or {name}=None")
