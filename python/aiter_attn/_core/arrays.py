# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The arrays of one call: borrowed from the caller, made for it, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NamedTuple, NoReturn

from aiter_attn import _C
from aiter_attn._core import problems, reading
from aiter_attn._core.adapters import Array, adapter_of
from aiter_attn._core.adapters.generic import (
    DEFAULT_STREAM,
    SAME_STREAM,
    GenericAdapter,
    check_contiguous,
    check_rows,
    device_name,
    dlpack_stream,
)

__all__ = ["Arrays", "Part", "padded", "parts_of", "those_given"]

# The library aligns the workspace itself.
_WORKSPACE_ALIGNMENT: Final = 256
_GREATEST_STREAM: Final = 2**64 - 1
_CPU: Final = (_C.DEVICE_CPU, 0)


def those_given(**arrays: Any) -> dict[str, Any]:
    """Without those that are None."""
    return {name: array for name, array in arrays.items() if array is not None}


class Part(NamedTuple):
    """One of the arrays that lie beside each other in another one: it stands for an argument."""

    name: str  # of the argument that has it
    whole: Array
    parts: int
    position: int
    is_varlen: bool


def parts_of(name: str, whole: Array, parts: int, is_varlen: bool = False) -> Any:
    """The parts of one array, for functions that take separate arrays."""
    return [Part(name, whole, parts, position, is_varlen) for position in range(parts)]


class Arrays:
    """Every array that a call borrows, by its argument's name and as long as this lives, and where
    the call runs: on the device of the first array, the lead, on the stream that is given, or that
    the lead's framework works on.

    An array is looked at by its framework's adapter once, whatever the call wants to know of it.
    """

    # The functions that take an array which cannot be made, by the array's name.
    takers: ClassVar[dict[str, str]] = {}
    # The stream that results are made on: None leaves them to the one that the caller works on.
    _given_stream: int | None = None
    # The stream that the work is queued on, None in host memory; and the values by which DLPack's
    # producers make their arrays ready for that: those of the lead's framework, and all others.
    _stream: int | None = None
    _own_stream: int | None = None
    _others_stream: int | None = None
    # The array that parts lie in.
    _whole: tuple[Any, _C.Tensor] | None = None

    def __init__(self, given: Mapping[str, Any], stream: int | None = None) -> None:
        """given: the arrays by their names; the lead is the first."""
        name, lead = next(iter(given.items()))
        if type(lead) is Part:
            name, lead = lead.name, lead.whole
        self._lead: Any = lead
        self._lead_name = name
        self._adapter = adapter = adapter_of(name, lead)
        self._device = device = adapter.device(name, lead)
        if device != _CPU:
            self._choose_stream(stream)
        elif stream is not None:
            raise ValueError("stream: the arrays are in host memory; pass stream=None")
        self.tensors: dict[str, _C.Tensor] = {}
        self.lend(given)

    def lend(self, given: Mapping[str, Any]) -> None:
        """Borrows more arrays of the caller's, or parts of arrays."""
        adapter, lead, device = self._adapter, self._lead, self._device
        kind = type(lead)
        for name, array in given.items():
            if array is lead:
                self.tensors[name] = adapter.borrow(name, array, device, self._own_stream)
            elif type(array) is kind:
                place = adapter.device(name, array)
                if place != device:
                    self._refuse_place(name, place)
                self.tensors[name] = adapter.borrow(name, array, device, self._own_stream)
            else:
                self.borrow(name, array)

    def _choose_stream(self, stream: int | None) -> None:
        self._check_device()
        if stream is not None:
            allowed = "a hipStream_t as int, or None"
            stream = reading.integer("stream", stream, _GREATEST_STREAM, allowed)
            self._given_stream = own = stream
        else:
            stream = self._adapter.current_stream(self._lead)
            # Work on the framework's own stream is queued behind what made the array.
            own = None if stream is None else SAME_STREAM  # type: ignore[assignment]
        self._stream = DEFAULT_STREAM if stream is None else stream
        self._others_stream = dlpack_stream(self._device[0], self._stream)
        self._own_stream = self._others_stream if own is None else own

    def _check_device(self) -> None:
        """Raises where calls of this kind do not run on such a device."""
        if self._device[0] != _C.DEVICE_ROCM:
            raise ValueError(
                f"{self._lead_name}: on {device_name(self._device)}; allowed: CPU (host memory) "
                "and ROCm (AMD GPUs); copy the arrays to one of them"
            )

    def _refuse_place(self, name: str, place: tuple[int, int]) -> NoReturn:
        raise ValueError(
            f"{name}: on {device_name(place)}, but {self._lead_name} is on "
            f"{device_name(self._device)}; all arrays of a call are on one device"
        )

    def borrow(self, name: str, array: Any) -> _C.Tensor:
        """One more array of the caller's, or a part of one."""
        tensor = self._part(array) if type(array) is Part else self._lent(name, array)
        self.tensors[name] = tensor
        return tensor

    def _part(self, part: Part) -> _C.Tensor:
        name = part.name
        if self._whole is None or self._whole[0] is not part.whole:
            self._whole = part.whole, self._lent(name, part.whole)
        whole = self._whole[1]
        along = problems.check_packed(name, whole, part.parts, part.is_varlen)
        check_rows(name, whole)
        return whole.entry(along, part.position)

    def _lent(self, name: str, array: Any) -> _C.Tensor:
        adapter = adapter_of(name, array)
        place = adapter.device(name, array)
        if place != self._device:
            self._refuse_place(name, place)
        ready_for = self._own_stream if adapter is self._adapter else self._others_stream
        return adapter.borrow(name, array, place, ready_for)

    def make(
        self,
        name: str,
        adapter: GenericAdapter,
        like: Any,
        want: tuple[tuple[int, ...], str],
        dtype: str | None,
        stream: int | None,
    ) -> Any:
        """A new array of a shape and dtype, want, by the adapter of `like`, for work on `stream`.

        dtype is that of want, or None where it is like's own.
        """
        made = adapter.empty(name, like, want[0], dtype, stream)
        # Results for jax are written to numpy arrays.
        maker = adapter if type(made) is type(like) else adapter_of(name, made)
        ready_for = self._own_stream if maker is self._adapter else self._others_stream
        self.tensors[name] = tensor = maker.borrow(name, made, self._device, ready_for)
        if not adapter.exact:
            adapter.check_made(name, like, tensor, *want)
        return made

    def make_workspace(self, size: int, stream: int | None) -> None:
        """Of a framework that keeps it until the stream is done."""
        want = (padded(size),), "uint8"
        self.make("workspace", self._adapter, self._lead, want, "uint8", stream)

    def no_probabilities(self) -> Any:
        """flash-attn's S_dmask, where there is no dropout."""
        made = self._adapter.empty("probs", self._lead, (0,), None, None)
        return self._adapter.result(made, self._lead)

    def written(
        self,
        outputs: Mapping[str, tuple[Any, problems.ShapeDtype]],
        run: Callable[[], object],
        workspace_size: Callable[[], int] | None = None,
        workspace: Any = None,
    ) -> list[Any]:
        """The arrays of outputs, once run() has written them: those that are given, checked, or for
        None new ones. workspace: the caller's, or None, of as many bytes as are asked for."""
        adapter, lead = self._adapter, self._lead
        of_lead = next(iter(self.tensors.values())).dtype
        arrays = []
        for name, (given, want) in outputs.items():
            if given is not None:
                if not adapter_of(name, given).writable:
                    raise ValueError(
                        f"{name}: {type(given).__name__} is immutable; pass {name}=None"
                    )
                self.borrow(name, given)
                self.check(name, want, written=True)
                arrays.append(given)
                continue
            dtype = None if want.dtype == of_lead else want.dtype
            try:
                arrays.append(self.make(name, adapter, lead, want[:2], dtype, self._given_stream))
            except TypeError as error:
                raise TypeError(f"{error}; {self._to_pass(name, want)}") from error
        if workspace_size is not None:
            self._lend_workspace(workspace, workspace_size())
        run()
        if not adapter.hands_over:
            return arrays
        return [
            array if given is not None else adapter.result(array, lead)
            for array, (given, _) in zip(arrays, outputs.values(), strict=True)
        ]

    def check(self, name: str, want: problems.ShapeDtype, written: bool = False) -> None:
        """Raises TypeError or ValueError where a borrowed array is not what the call wants."""
        tensor = self.tensors[name]
        if _fits(tensor, want, written):
            return
        problems.check(name, tensor, want)
        (check_contiguous if name in ("lse", "dsink") else check_rows)(name, tensor)
        if written:
            _check_writable(name, tensor)

    def _to_pass(self, name: str, want: problems.ShapeDtype) -> str:
        """The advice to a caller whose result cannot be made."""
        if name not in self.takers:
            return "pass numpy, torch, cupy or jax arrays"
        shape, takers = want.shape, self.takers[name]
        return f"pass {name}= with shape {shape} and dtype {want.dtype} to {takers}"

    def _lend_workspace(self, given: Any, size: int) -> None:
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
            self.make_workspace(size, self._given_stream)
            return
        tensor = self.borrow("workspace", given)
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
