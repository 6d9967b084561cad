# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""One launch of an object of AITER's on a case, with every check of the emulator on.

Buffers end where their data ends. Between the heads of a token lie `gap` elements of NaN (inputs)
or of a pattern that must stay (outputs). The waves of a workgroup may meet at different
`s_barrier`s: halves of a workgroup take turns there, at barriers of their own.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from gfxemu import Checks, Device, EmulationError, LlvmMc
from gfxemu.checks import COUNTED
from gfxemu.errors import MemoryFault

from kernels.aiter_asm import split, table
from kernels.aiter_asm.decode import DecodeObject
from kernels.aiter_asm.table import AsmObject
from tests.emulation.harness import reference
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, MASK_NONE, MASK_TOP_LEFT, Case
from tests.emulation.harness.reference import UNIT, Error, Expected, from_storage, to_storage

Array = np.ndarray

GAP = 8  # elements, 16 bytes
LOG2E = 1.4426950408889634
_NAN, _UNTOUCHED = 0x7FFF, 0x5A5A  # NaN in either dtype
_MASKS = {
    "none": MASK_NONE, "causal": MASK_BOTTOM_RIGHT, "causal_top_left": MASK_TOP_LEFT,
}  # fmt: skip


@functools.cache
def objects() -> table.Table:
    folder = Path("kernels/aiter_asm")
    return table.read_table(
        *(
            (folder / f"{name}.toml").read_text("utf-8")
            for name in ("forward", "backward", "defects")
        )
    )


@functools.cache
def code(file: str) -> bytes:
    """The bytes of an object. AITER_ASM_OBJECTS has the paths of those there are."""
    (path,) = (p for p in os.environ["AITER_ASM_OBJECTS"].split() if p.endswith("/hsa/" + file))
    return Path(path).read_bytes()


@functools.cache
def device(arch: str) -> Device:
    return Device(arch, LlvmMc.from_environment())


def masked(chosen: AsmObject, case: Case) -> Case:
    """The case with the object's mask; a window is the case's own."""
    if chosen.mask == "window":
        return case
    window = (-1, -1) if chosen.mask == "none" else (-1, 0)
    return dataclasses.replace(case, mask=_MASKS[chosen.mask], window=window)


@dataclasses.dataclass
class Result:
    """`signatures` are those of findings, with the messages; `fault` stopped the kernel, "" if
    none did. `errors` are in units of rounding, empty after a fault."""

    signatures: dict[str, str] = dataclasses.field(default_factory=dict)
    fault: str = ""
    errors: dict[str, Error] = dataclasses.field(default_factory=dict)
    gaps_untouched: bool = True
    in_step: bool = True
    wave_instructions: int = 0
    seconds: float = 0.0


@dataclasses.dataclass
class Tokens:
    """Heads of tokens in memory, 16 bits an element, with a gap after each but the last."""

    flat: Array
    tokens: int
    heads: int
    size: int
    gap: int
    kept: Array | None = None

    @classmethod
    def of(cls, values: Array, gap: int) -> Tokens:
        """Of [tokens][heads][size]; NaN in the gaps."""
        tokens, heads, size = values.shape
        rows = np.full((tokens, heads, size + gap), _NAN, np.uint16)
        rows[..., :size] = values
        return cls(rows.reshape(-1)[: max(rows.size - gap, 1)].copy(), tokens, heads, size, gap)

    @classmethod
    def output(cls, tokens: int, heads: int, size: int, gap: int, fill: int = _UNTOUCHED) -> Tokens:
        """For a kernel to write; `fill` where it does, a pattern in the gaps."""
        rows = np.full((tokens, heads, size + gap), _UNTOUCHED, np.uint16)
        rows[..., :size] = fill
        return cls(rows.reshape(-1)[: max(rows.size - gap, 1)].copy(), tokens, heads, size, gap)

    @property
    def head_stride(self) -> int:
        """Bytes."""
        return 2 * (self.size + self.gap)

    @property
    def stride(self) -> int:
        """Bytes from a token to the next."""
        return self.heads * self.head_stride

    def zero(self, first: int, tokens: int) -> None:
        """Zeros for these tokens, which count as written."""
        self.flat[self.keep(slice(first, first + tokens))] = 0

    def keep(self, tokens: slice | Array) -> Array:
        """These tokens count as written as they are. Which elements of `flat` they have."""
        at = np.zeros((self.tokens, self.heads, self.size + self.gap), bool)
        at[tokens, :, : self.size] = True
        flat = at.reshape(-1)[: self.flat.size]
        self.kept = flat if self.kept is None else self.kept | flat
        return flat

    def _rows(self) -> Array:
        full = np.full(self.tokens * self.heads * (self.size + self.gap), _UNTOUCHED, np.uint16)
        full[: self.flat.size] = self.flat[: full.size]
        return full.reshape(self.tokens, self.heads, -1)

    def values(self) -> Array:
        """[tokens][heads][size]"""
        return self._rows()[..., : self.size].copy()

    def gaps_untouched(self) -> bool:
        return bool((self._rows()[..., self.size :] == _UNTOUCHED).all())

    def written(self) -> Array:
        """Of each byte of an output, whether it counts as written: gaps, and what is kept."""
        rows = np.zeros((self.tokens, self.heads, self.size + self.gap), bool)
        rows[..., self.size :] = True
        flat = rows.reshape(-1)[: self.flat.size]
        return np.repeat(flat if self.kept is None else flat | self.kept, 2)


class Session:
    """Buffers of launches that follow each other, and what came of the launches."""

    def __init__(self, arch: str, schedule: str, soffset: str = COUNTED, late: bool = True):
        self.result = Result()
        self.addresses: dict[str, int] = {}
        self._device = device(arch)
        self._schedule = schedule
        self._checks = Checks(same_barrier=False, soffset=soffset, late_landing=late)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        for address in self.addresses.values():
            self._device.memory.unregister(address)

    def place(self, buffers: Mapping[str, Array | Tokens]) -> None:
        for name, buffer in buffers.items():
            array = buffer.flat if isinstance(buffer, Tokens) else buffer
            self.addresses[name] = self._device.memory.register(array, name)

    def replace(self, buffers: Mapping[str, Array]) -> None:
        """Other contents for names that may be placed already."""
        for name in buffers:
            if name in self.addresses:
                self._device.memory.unregister(self.addresses.pop(name))
        self.place(buffers)

    def unwritten(self, outputs: Mapping[str, Tokens]) -> None:
        """Places outputs, whose contents but for the gaps count as unwritten."""
        for name, tokens in outputs.items():
            self.output(name, tokens.flat, tokens.written())

    def output(self, name: str, array: Array, written: Array) -> None:
        """Places an output; of each byte, `written` tells whether it was written, also later."""
        self.addresses[name] = self._device.memory.register(array, name, written=written)

    def launch(
        self,
        chosen: AsmObject | DecodeObject,
        grid: tuple[int, ...],
        values: Mapping[str, float],
        unwritten: Collection[str] = (),
    ) -> None:
        """Launches with those of `values` that the object has as arguments."""
        if self.result.fault:
            return
        kernel, program = self._device.program(code(chosen.file), chosen.symbol)
        names = {argument.name for argument in chosen.layout.arguments}
        kernarg = chosen.layout.pack({n: v for n, v in values.items() if n in names})
        try:
            report = self._device.launch(
                kernel, program, grid=(grid[0], grid[1], grid[2]),
                block=(chosen.block, 1, 1), kernarg=kernarg,
                checks=self._checks, schedule=self._schedule,
                uninitialised=[self.addresses[name] for name in unwritten],
            )  # fmt: skip
        except EmulationError as error:
            kind = "MemoryFault" if isinstance(error, MemoryFault) else type(error).__name__
            self.result.fault = f"{kind}: {error}"
            return
        found = {finding.signature: finding.message for finding in report.findings}
        self.result.signatures |= found
        self.result.in_step &= report.in_step
        self.result.wave_instructions += report.wave_instructions
        self.result.seconds += report.seconds


def _strides(name: str, tokens: Tokens, length: int, group: bool) -> dict[str, int]:
    """The arguments of one array; `length` tokens are in a batch."""
    return {
        f"stride_{name}": tokens.stride,
        f"head_stride_{name}": tokens.head_stride,
        f"batch_stride_{name}": 0 if group else length * tokens.stride,
    }


def _lengths(case: Case, group: bool) -> tuple[int, int]:
    """seqlen_q and seqlen_k as arguments: totals in group mode."""
    return (case.total_q, case.total_k) if group else case.lengths[0]


def _starts(case: Case) -> dict[str, Array]:
    """The arrays of sequences that follow each other."""
    starts = np.array(case.starts(), np.int32).T.copy()
    return {"seqstart_q": starts[0], "seqstart_k": starts[1]}


def _used(case: Case, padding: Sequence[tuple[int, int]], side: int) -> Array:
    """Which rows of queries (0) or keys (1) are used: behind a sequence's are those of padding."""
    behind = padding or ((0, 0),) * len(case.lengths)
    rows = [
        np.arange(length[side] + more[side]) < length[side]
        for length, more in zip(case.lengths, behind, strict=True)
    ]
    return np.concatenate(rows)


def _padded_starts(case: Case, padding: Sequence[tuple[int, int]]) -> dict[str, Array]:
    rooms = np.array(case.lengths, np.int32) + np.array(padding, np.int32)
    starts = np.concatenate([[(0, 0)], np.cumsum(rooms, axis=0)]).astype(np.int32).T.copy()
    return {"padded_seqstart_q": starts[0], "padded_seqstart_k": starts[1]}


def _spread(values: Array, used: Array) -> Array:
    """[tokens][heads][size] in the rows that are used, NaN in the others."""
    rows = np.full((used.size, *values.shape[1:]), _NAN, np.uint16)
    rows[used] = values
    return rows


def _piece_starts(pieces: list[split.Piece]) -> dict[str, Array]:
    arguments = dataclasses.asdict(split.Arguments.of(pieces))
    return {name: np.array(numbers, np.int32) for name, numbers in arguments.items()}


def forward(
    chosen: AsmObject,
    case: Case,
    *,
    gap: int = GAP,
    schedule: str = "sliced:8",
    soffset: str = COUNTED,
    tiles_as_sequences: bool = False,
    option: int | None = None,
    padding: Sequence[tuple[int, int]] = (),
) -> Result:
    """o and lse of a forward kernel; by split.py with `tiles_as_sequences`, with an `option` that
    is not the one for the case, in group mode with rows of `padding` behind the queries and the
    keys of each sequence: NaN in inputs, a pattern that must stay in outputs."""
    case = masked(chosen, case)
    sizes = chosen.head_size_qk, chosen.head_size_v
    inputs = reference.draw(case, chosen.dtype, sizes, 1, backward=False)
    expected = reference.reference(case, chosen.dtype, inputs)
    group = chosen.mode == "group"
    used_q, used_k = (_used(case, padding, side) for side in (0, 1))
    lengths = (used_q.size, used_k.size) if group else _lengths(case, group)
    arrays = {
        name: Tokens.of(_spread(getattr(inputs, name), used_q if name == "q" else used_k), gap)
        for name in "qkv"
    }
    arrays["o"] = Tokens.output(used_q.size, case.heads_q, sizes[1], gap)
    arrays["o"].keep(~used_q)
    shape = (1 if group else len(case.lengths), case.heads_q, lengths[0])
    lse = np.zeros(shape, np.float32)
    longest, sequences, starts = max(a for a, _ in case.lengths), len(case.lengths), _starts(case)
    if tiles_as_sequences:
        pieces = split.forward(case.lengths, chosen.tile_q)
        longest, sequences, starts = chosen.tile_q, len(pieces), _piece_starts(pieces)
    if padding:
        starts |= _padded_starts(case, padding)
    with Session(chosen.arch, schedule, soffset) as session:
        session.place({n: arrays[n] for n in "qkv"} | {"lse": lse} | starts)
        session.unwritten({"o": arrays["o"]})
        values = {
            "padded_seqstart_q": session.addresses["seqstart_q"],
            "padded_seqstart_k": session.addresses["seqstart_k"],
            **session.addresses,
            "scale": float(inputs.scale),
            "seqlen_q": lengths[0],
            "seqlen_k": lengths[1],
            "tile_stride_q": chosen.tile_q * arrays["q"].stride,
            "heads_q": case.heads_q,
            "heads_q_per_head_k": case.heads_q // case.heads_k,
            "option": chosen.option(longest, case.heads_q) if option is None else option,
            "store_lse": 1,
            "head_size_qk": sizes[0],
            "head_size_v": sizes[1],
            "head_stride_lse": 4 * lengths[0],
        }
        for name, tokens in arrays.items():
            values |= _strides(name, tokens, lengths[name in "kv"], group)
        grid = chosen.workgroups(longest, case.heads_q, sequences)
        # Memory that counts as unwritten is filled anew, padding too.
        session.launch(chosen, grid, values, unwritten=[] if padding else ["lse"])
    result = session.result
    if not result.fault:
        heads_first = lse.transpose(1, 0, 2).reshape(case.heads_q, used_q.size)
        rows = arrays["o"].values()
        untouched = (rows[~used_q] == _UNTOUCHED).all() and (heads_first[:, ~used_q] == 0).all()
        result.gaps_untouched = arrays["o"].gaps_untouched() and bool(untouched)
        heads_first = heads_first[:, used_q]
        got = from_storage(rows[used_q], chosen.dtype)
        result.errors = {
            "o": expected["o"].error(got),
            "lse": expected["lse"].error(heads_first.astype(np.float64)),
        }
    return result


def _by_head(expected: Expected, case: Case, group: bool) -> Array:
    """float32 rows as kernels read them: [heads_q][total_q] or [batch][heads_q][seqlen_q]."""
    rows = expected.value.astype(np.float32)
    if not group:
        rows = rows.reshape(case.heads_q, len(case.lengths), -1).transpose(1, 0, 2)
    return np.ascontiguousarray(rows)


def _window(case: Case) -> dict[str, int]:
    """The window as Composable Kernel's coordinates (make_generic_attention_mask_coordinates)."""
    length_q, length_k = case.lengths[0]
    left, right = case.window
    left = length_q - 1 if left < 0 else left
    right = length_k - 1 if right < 0 else right
    further = length_k - length_q if case.mask == MASK_BOTTOM_RIGHT else 0
    return {"mask_x": 1 + right + further, "mask_y": 1 + left - further}


def _of_16_bits(expected: dict[str, Expected], dtype: str, tiles: int) -> Expected:
    """dq of sums in the dtype: a part of each tile of keys is rounded, and each sum of them, to
    numbers about as large as the row's."""
    exact, u = expected["dq"], UNIT[dtype]
    size = np.sqrt((exact.value**2).mean(axis=2, keepdims=True))
    added = u * np.sqrt(2 * tiles) * np.maximum(np.abs(exact.value), size)
    return Expected(exact.value, np.sqrt(exact.unit**2 + added**2))


def backward(
    chosen: AsmObject,
    case: Case,
    *,
    head_size: int = 0,
    gap: int = GAP,
    behind: tuple[int, float] = (0, 0.0),
    schedule: str = "sliced:8",
    soffset: str = COUNTED,
    unmasked: AsmObject | None = None,
    bottom_right: bool = False,
) -> Result:
    """dq, dk and dv of a backward kernel, with its dq_shuffle where there is one.

    `head_size` is below the object's where that pads heads; 0: the object's. lse and delta are
    exact, rounded to float32, with so many more numbers of that value `behind` them. dk and dv are
    also judged summed over the heads of q that share one of k.

    With `unmasked`, the same object for no mask, the two are launched by split.py, `chosen` being
    causal from the top left. The mask may then be `bottom_right`.
    """
    case = masked(chosen, case)
    if bottom_right:
        case = dataclasses.replace(case, mask=MASK_BOTTOM_RIGHT)
    sizes = (head_size, head_size) if head_size else (chosen.head_size_qk, chosen.head_size_v)
    inputs = reference.draw(case, chosen.dtype, sizes, 1, backward=True)
    expected = reference.reference(case, chosen.dtype, inputs)
    whole = reference.gradients(case, chosen.dtype, expected)
    group, batch, heads = chosen.mode == "group", len(case.lengths), case.heads_q
    lengths = _lengths(case, group)
    longest_q, longest_k = (max(length) for length in zip(*case.lengths, strict=True))
    a16, shuffled = chosen.accumulator == "a16", bool(chosen.shuffle)
    arrays = {n: Tokens.of(getattr(inputs, n), gap) for n in "qkv"}
    arrays["do"] = Tokens.of(inputs.dout, gap)
    arrays["dk"] = Tokens.output(case.total_k, heads, sizes[0], gap)
    arrays["dv"] = Tokens.output(case.total_k, heads, sizes[1], gap)
    causal, open_pieces, unseen = split.backward(case.lengths, chosen.tile_k, bottom_right)
    if unmasked is not None:
        for name in ("dk", "dv"):
            for piece in unseen:
                arrays[name].zero(piece.first_k, piece.seqlen_k)
    # A sum starts at zero.
    zero_or_unwritten = 0 if a16 and not shuffled else _UNTOUCHED
    dq = Tokens.output(case.total_q, heads, sizes[0], gap, zero_or_unwritten)
    rows = longest_q if group else lengths[0]
    if shuffled:
        rows = -(-longest_q // 16) * 16
        dq_acc = np.zeros((batch, heads, rows, 128 if sizes[0] <= 128 else 192), np.uint16)
    elif group:
        dq_acc = np.zeros((heads, case.total_q, sizes[0]), np.float32)
    else:
        dq_acc = np.zeros((batch, heads, lengths[0], sizes[0]), np.float32)
    with Session(chosen.arch, schedule, soffset) as session:
        more = np.full(*behind, np.float32)
        rows_of = {
            name: np.concatenate([_by_head(expected[name], case, group).reshape(-1), more])
            for name in ("lse", "delta")
        }
        session.place({n: arrays[n] for n in ("q", "k", "v", "do")} | rows_of | _starts(case))
        session.unwritten({n: arrays[n] for n in ("dk", "dv")})
        if a16 and not shuffled:
            session.place({"dq": dq})
        else:
            session.place({"dq_acc": dq_acc})
        addresses = session.addresses
        values = {
            **addresses,
            "dq": addresses.get("dq") or addresses["dq_acc"],
            "padded_seqstart_q": addresses["seqstart_q"],
            "padded_seqstart_k": addresses["seqstart_k"],
            "scale": float(inputs.scale),
            "log2e": LOG2E,
            "seqlen": lengths[0],
            "seqlen_q": lengths[0],
            "seqlen_k": lengths[1],
            "heads_q": heads,
            "heads_q_per_head_k": heads // case.heads_k,
            "head_size_qk": sizes[0],
            "head_size_v": sizes[1],
            "head_stride_lse": 4 * lengths[0],
            "tile_stride_k": chosen.tile_k * arrays["k"].stride,
            "max_seqlen_dq": rows,
        }
        values |= _window(case) if case.mask else {"mask_x": 0, "mask_y": 0}
        for name, tokens in arrays.items():
            values |= _strides(name, tokens, lengths[name in ("k", "v", "dk", "dv")], group)
        if unmasked is None:
            session.launch(chosen, chosen.workgroups(longest_k, heads, batch), values)
        else:
            for launched, pieces in ((chosen, causal), (unmasked, open_pieces)):
                if pieces:
                    session.replace(_piece_starts(pieces))
                    longest = max(piece.seqlen_k for piece in pieces)
                    grid = launched.workgroups(longest, heads, len(pieces))
                    session.launch(launched, grid, values | session.addresses)
        if shuffled and not session.result.fault:
            session.unwritten({"dq": dq})
            finish = next(
                o for o in objects().objects
                if (o.folder, o.name) == (chosen.folder, chosen.shuffle)
            )  # fmt: skip
            row, head = 2 * dq_acc.shape[3], 2 * dq_acc.shape[3] * rows
            values |= {
                **session.addresses,
                **_strides("dq", dq, lengths[0], group),
                "tile_stride_dq": finish.tile_q * dq.stride,
                "stride_dq_acc": row,
                "head_stride_dq_acc": head,
                "batch_stride_dq_acc": heads * head,
            }
            session.launch(finish, finish.workgroups(longest_q, heads, batch), values)
    result = session.result
    if result.fault:
        return result
    outputs = [arrays["dk"], arrays["dv"]] + ([dq] if a16 else [])
    result.gaps_untouched = all(tokens.gaps_untouched() for tokens in outputs)
    for name in ("dk", "dv"):
        got = from_storage(arrays[name].values(), chosen.dtype)
        result.errors[name] = expected[name].error(got)
        if heads != case.heads_k:
            shape = (case.total_k, case.heads_k, -1, got.shape[2])
            total = to_storage(got.reshape(shape).sum(axis=2), chosen.dtype)
            result.errors[f"{name}, summed"] = whole[name].error(from_storage(total, chosen.dtype))
    if a16:
        tiles = -(-longest_k // chosen.tile_k)
        got = from_storage(dq.values(), chosen.dtype)
        result.errors["dq"] = _of_16_bits(whole, chosen.dtype, tiles).error(got)
    else:
        sums = dq_acc.transpose(1, 0, 2) if group else dq_acc.transpose(0, 2, 1, 3)
        sums = sums.reshape(case.total_q, heads, sizes[0])
        result.errors["dq_acc"] = expected["dq_acc"].error(sums.astype(np.float64))
        stored = from_storage(to_storage(sums, chosen.dtype), chosen.dtype)
        result.errors["dq"] = whole["dq"].error(stored)
    return result
