# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""xformers.ops.fmha.attn_bias: masks of scores by their form, which need no memory."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar

import torch

from aiter_attn._core.errors import UnsupportedError
from aiter_attn.compat import _names

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "AttentionBias",
    "BlockDiagonalCausalFromBottomRightMask",
    "BlockDiagonalCausalLocalAttentionFromBottomRightMask",
    "BlockDiagonalCausalLocalAttentionMask",
    "BlockDiagonalCausalLocalAttentionPaddedKeysMask",
    "BlockDiagonalCausalMask",
    "BlockDiagonalCausalWithOffsetPaddedKeysMask",
    "BlockDiagonalLocalAttentionPaddedKeysMask",
    "BlockDiagonalMask",
    "BlockDiagonalPaddedKeysMask",
    "LocalAttentionFromBottomRightMask",
    "LowerTriangularFromBottomRightLocalAttentionMask",
    "LowerTriangularFromBottomRightMask",
    "LowerTriangularMask",
    "LowerTriangularMaskWithTensorBias",
]


_Moved = TypeVar("_Moved")


class Pattern(NamedTuple):
    """The keys that a query sees, as window_size says it, -1: no bound. at_first: aligned at the
    first query and key, not at the last."""

    at_first: bool = False
    left: int = -1
    right: int = -1

    def seen(self, queries: int, keys: int) -> torch.Tensor:
        places = torch.arange(keys) - torch.arange(queries)[:, None]
        if not self.at_first:
            places = places - (keys - queries)
        seen = torch.ones(queries, keys, dtype=torch.bool)
        if self.left >= 0:
            seen &= places >= -self.left
        if self.right >= 0:
            seen &= places <= self.right
        return seen


def _local(bias: Any) -> Pattern:
    return Pattern(left=bias.window_left, right=bias.window_right)


def _causal_local(bias: Any) -> Pattern:
    return Pattern(left=bias._window_size - 1, right=0)


_ALL: Final = Pattern()
_CAUSAL: Final = Pattern(right=0)
_CAUSAL_AT_FIRST: Final = Pattern(True, right=0)
# By the names of classes, which are xformers' own, too.
_PATTERNS: Final[dict[str, Callable[[Any], Pattern]]] = {
    "BlockDiagonalCausalFromBottomRightMask": lambda _: _CAUSAL,
    "BlockDiagonalCausalLocalAttentionFromBottomRightMask": _causal_local,
    "BlockDiagonalCausalLocalAttentionMask": lambda b: _causal_local(b)._replace(at_first=True),
    "BlockDiagonalCausalLocalAttentionPaddedKeysMask": _causal_local,
    "BlockDiagonalCausalMask": lambda _: _CAUSAL_AT_FIRST,
    "BlockDiagonalCausalWithOffsetPaddedKeysMask": lambda _: _CAUSAL,
    "BlockDiagonalLocalAttentionPaddedKeysMask": _local,
    "BlockDiagonalMask": lambda _: _ALL,
    "BlockDiagonalPaddedKeysMask": lambda _: _ALL,
    "LocalAttentionFromBottomRightMask": _local,
    "LowerTriangularFromBottomRightLocalAttentionMask": _causal_local,
    "LowerTriangularFromBottomRightMask": lambda _: _CAUSAL,
    "LowerTriangularMask": lambda _: _CAUSAL_AT_FIRST,
    "LowerTriangularMaskWithTensorBias": lambda _: _CAUSAL_AT_FIRST,
    "PagedBlockDiagonalCausalWithOffsetPaddedKeysMask": lambda _: _CAUSAL,
    "PagedBlockDiagonalPaddedKeysMask": lambda _: _ALL,
}


def pattern_of(bias: Any) -> Pattern:
    """Raises UnsupportedError for a class that is not known."""
    name = type(bias).__name__
    known = _PATTERNS.get(name)
    if known is None:
        raise UnsupportedError(
            f"attn_bias: {name}; allowed: a tensor, None, or one of {', '.join(sorted(_PATTERNS))}"
        )
    return known(bias)


def _moved(given: _Moved, device: Any) -> _Moved:
    """A copy, whose tensors are there."""
    made = copy.copy(given)
    for name, value in vars(given).items():
        if isinstance(value, torch.Tensor | _SeqLenInfo):
            setattr(made, name, value.to(device))
    return made


class AttentionBias:
    """The base of all."""

    def to(self, device: Any) -> Self:
        return _moved(self, device)

    def materialize(
        self, shape: tuple[int, ...], dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> torch.Tensor:
        """0 where a query sees a key, else -inf; shape: [..., queries, keys]."""
        return _added(pattern_of(self).seen(*shape[-2:]), shape, dtype, device)


def _added(
    seen: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype, device: Any
) -> torch.Tensor:
    added = torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, -torch.inf)
    return added.to(device).expand(shape)


class LowerTriangularMask(AttentionBias):
    def __init__(self, device: Any = None) -> None:
        del device

    def add_bias(self, bias: torch.Tensor) -> LowerTriangularMaskWithTensorBias:
        return LowerTriangularMaskWithTensorBias(bias)


class LowerTriangularMaskWithTensorBias(LowerTriangularMask):
    def __init__(self, bias: torch.Tensor) -> None:
        super().__init__()
        self._bias = bias

    def materialize(
        self, shape: tuple[int, ...], dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> torch.Tensor:
        return super().materialize(shape, dtype, device) + self._bias


class LowerTriangularFromBottomRightMask(AttentionBias):
    def make_local_attention(
        self, window_size: int
    ) -> LowerTriangularFromBottomRightLocalAttentionMask:
        return LowerTriangularFromBottomRightLocalAttentionMask(window_size)


@dataclasses.dataclass
class LowerTriangularFromBottomRightLocalAttentionMask(LowerTriangularFromBottomRightMask):
    _window_size: int

    def __post_init__(self) -> None:
        _check_window(window_size=self._window_size - 1)


@dataclasses.dataclass
class LocalAttentionFromBottomRightMask(AttentionBias):
    window_left: int
    window_right: int

    def __post_init__(self) -> None:
        _check_window(window_left=self.window_left, window_right=self.window_right)


def _check_window(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 0:
            least = 1 if name == "window_size" else 0
            raise ValueError(f"{name}: {size + least}; allowed: {least} or more")


@dataclasses.dataclass
class _SeqLenInfo:
    """The division of rows into sequences, which lie one after the other."""

    seqstart: torch.Tensor  # int32
    max_seqlen: int
    min_seqlen: int
    seqstart_py: list[int]

    @classmethod
    def from_seqlens(cls, seqlens: Iterable[int], *, device: Any = None) -> _SeqLenInfo:
        lengths = list(seqlens)
        starts = list(itertools.accumulate(lengths, initial=0))
        seqstart = torch.tensor(starts, dtype=torch.int32, device=_device(device))
        return _SeqLenInfo(seqstart, max(lengths, default=-1), min(lengths, default=-1), starts)

    def to(self, device: Any) -> Self:
        return _moved(self, device)

    def intervals(self) -> Iterator[tuple[int, int]]:
        yield from itertools.pairwise(self.seqstart_py)

    def split(
        self, x: torch.Tensor, batch_sizes: Sequence[int] | None = None
    ) -> list[torch.Tensor]:
        """[1, rows, ...] by sequences, of which those of one batch stay together."""
        if x.shape[0] != 1 or x.shape[1] != self.seqstart_py[-1]:
            raise ValueError(
                f"tensor: shape {tuple(x.shape)}; allowed here: [1, {self.seqstart_py[-1]}, ...]"
            )
        sizes = [1] * (len(self.seqstart_py) - 1) if batch_sizes is None else list(batch_sizes)
        ends = list(itertools.accumulate(sizes, initial=0))
        parts = (
            x[:, self.seqstart_py[first] : self.seqstart_py[last]]
            for first, last in itertools.pairwise(ends)
        )
        return [
            part.reshape(size, -1, *x.shape[2:]) for size, part in zip(sizes, parts, strict=True)
        ]


@dataclasses.dataclass
class _PaddedSeqLenInfo(_SeqLenInfo):
    """Sequences of `padding` rows each, of which the first seqlen are used."""

    seqlen: torch.Tensor  # int32
    seqlen_py: list[int]
    padding: int

    @classmethod
    def from_seqlens_padded(
        cls, seqlens: Sequence[int], padding: int, *, device: Any = None
    ) -> _PaddedSeqLenInfo:
        lengths = list(seqlens)
        if any(length > padding for length in lengths):
            raise ValueError(f"kv_seqlen: {lengths}; allowed: up to kv_padding, {padding}")
        starts = list(range(0, len(lengths) * padding + 1, padding))
        return cls(
            torch.tensor(starts, dtype=torch.int32, device=_device(device)),
            max(lengths),
            min(lengths),
            starts,
            torch.tensor(lengths, dtype=torch.int32, device=_device(device)),
            lengths,
            padding,
        )

    def intervals(self) -> Iterator[tuple[int, int]]:
        for start, length in zip(self.seqstart_py, self.seqlen_py, strict=False):
            yield start, start + length


def _device(device: Any) -> Any:
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return device


@dataclasses.dataclass
class _Blocks(AttentionBias):
    q_seqinfo: _SeqLenInfo
    k_seqinfo: Any

    def materialize(
        self, shape: tuple[int, ...], dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> torch.Tensor:
        seen = torch.zeros(shape[-2:], dtype=torch.bool)
        pattern = pattern_of(self)
        intervals = zip(self.q_seqinfo.intervals(), self.k_seqinfo.intervals(), strict=True)
        for (first, last), (first_key, last_key) in intervals:
            block = pattern.seen(last - first, last_key - first_key)
            seen[first:last, first_key:last_key] = block
        return _added(seen, shape, dtype, device)


@dataclasses.dataclass
class BlockDiagonalMask(_Blocks):
    _batch_sizes: Sequence[int] | None = None

    @classmethod
    def from_seqlens(
        cls, q_seqlen: Sequence[int], kv_seqlen: Sequence[int] | None = None, *, device: Any = None
    ) -> Any:
        queries = _SeqLenInfo.from_seqlens(q_seqlen, device=device)
        if kv_seqlen is None or list(kv_seqlen) == list(q_seqlen):
            return cls(queries, queries)
        if len(kv_seqlen) != len(q_seqlen):
            raise ValueError(
                f"kv_seqlen: {len(kv_seqlen)} sequences, but q_seqlen has {len(q_seqlen)}; "
                "allowed: as many"
            )
        return cls(queries, _SeqLenInfo.from_seqlens(kv_seqlen, device=device))

    @classmethod
    def from_tensor_list(cls, tensors: Sequence[torch.Tensor]) -> tuple[Any, torch.Tensor]:
        """The mask of tensors [batch, seqlen, ...], and the tensors as one, [1, rows, ...]."""
        mask = cls.from_seqlens(_lengths(tensors), device=tensors[0].device)
        mask._batch_sizes = [len(x) for x in tensors]
        return mask, _joined(tensors)

    @classmethod
    def from_tensor_lists_qkv(
        cls,
        tensors_q: Sequence[torch.Tensor],
        tensors_k: Sequence[torch.Tensor],
        tensors_v: Sequence[torch.Tensor] | None = None,
    ) -> tuple[Any, torch.Tensor, torch.Tensor, torch.Tensor | None]:
        lengths = _lengths(tensors_q), _lengths(tensors_k)
        mask = cls.from_seqlens(*lengths, device=tensors_q[0].device)
        mask._batch_sizes = [len(x) for x in tensors_q]
        values = None if tensors_v is None else _joined(tensors_v)
        return mask, _joined(tensors_q), _joined(tensors_k), values

    def split(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        return self.split_queries(tensor)

    def split_queries(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        return self.q_seqinfo.split(tensor, self._batch_sizes)

    def split_kv(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        split: list[torch.Tensor] = self.k_seqinfo.split(tensor, self._batch_sizes)
        return split

    def make_causal(self) -> BlockDiagonalCausalMask:
        return BlockDiagonalCausalMask(self.q_seqinfo, self.k_seqinfo, self._batch_sizes)

    def make_causal_from_bottomright(self) -> BlockDiagonalCausalFromBottomRightMask:
        parts = (self.q_seqinfo, self.k_seqinfo, self._batch_sizes)
        return BlockDiagonalCausalFromBottomRightMask(*parts)

    def make_local_attention(self, window_size: int) -> BlockDiagonalCausalLocalAttentionMask:
        parts = (self.q_seqinfo, self.k_seqinfo, self._batch_sizes)
        return BlockDiagonalCausalLocalAttentionMask(*parts, window_size)

    def make_local_attention_from_bottomright(
        self, window_size: int
    ) -> BlockDiagonalCausalLocalAttentionFromBottomRightMask:
        parts = (self.q_seqinfo, self.k_seqinfo, self._batch_sizes)
        return BlockDiagonalCausalLocalAttentionFromBottomRightMask(*parts, window_size)


def _lengths(tensors: Sequence[torch.Tensor]) -> list[int]:
    return [x.shape[1] for x in tensors for _ in range(x.shape[0])]


def _joined(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([x.reshape(1, -1, *x.shape[2:]) for x in tensors], dim=1)


@dataclasses.dataclass
class BlockDiagonalCausalMask(BlockDiagonalMask):
    pass


@dataclasses.dataclass
class BlockDiagonalCausalFromBottomRightMask(BlockDiagonalMask):
    pass


@dataclasses.dataclass
class BlockDiagonalCausalLocalAttentionMask(BlockDiagonalCausalMask):
    _window_size: int = 0

    def __post_init__(self) -> None:
        _check_window(window_size=self._window_size - 1)


@dataclasses.dataclass
class BlockDiagonalCausalLocalAttentionFromBottomRightMask(BlockDiagonalCausalFromBottomRightMask):
    _window_size: int = 0

    def __post_init__(self) -> None:
        _check_window(window_size=self._window_size - 1)


@dataclasses.dataclass
class BlockDiagonalPaddedKeysMask(_Blocks):
    @classmethod
    def from_seqlens(
        cls,
        q_seqlen: Sequence[int],
        kv_padding: int,
        kv_seqlen: Sequence[int],
        causal_diagonal: Any = None,
        *,
        device: Any = None,
    ) -> Any:
        del causal_diagonal  # as in xformers
        return cls(*_padded(q_seqlen, kv_padding, kv_seqlen, device))

    def make_local_attention(
        self, window_left: int, window_right: int
    ) -> BlockDiagonalLocalAttentionPaddedKeysMask:
        parts = (self.q_seqinfo, self.k_seqinfo)
        return BlockDiagonalLocalAttentionPaddedKeysMask(*parts, window_left, window_right)


def _padded(
    q_seqlen: Sequence[int], kv_padding: int, kv_seqlen: Sequence[int], device: Any
) -> tuple[_SeqLenInfo, _PaddedSeqLenInfo]:
    return (
        _SeqLenInfo.from_seqlens(q_seqlen, device=device),
        _PaddedSeqLenInfo.from_seqlens_padded(kv_seqlen, kv_padding, device=device),
    )


@dataclasses.dataclass
class BlockDiagonalCausalWithOffsetPaddedKeysMask(BlockDiagonalPaddedKeysMask):
    causal_diagonal: Any = None


@dataclasses.dataclass
class BlockDiagonalLocalAttentionPaddedKeysMask(BlockDiagonalPaddedKeysMask):
    window_left: int
    window_right: int

    @classmethod
    def from_seqlens_local(
        cls,
        q_seqlen: Sequence[int],
        kv_padding: int,
        kv_seqlen: Sequence[int],
        window_left: int,
        window_right: int,
    ) -> Any:
        return cls(*_padded(q_seqlen, kv_padding, kv_seqlen, None), window_left, window_right)


@dataclasses.dataclass
class BlockDiagonalCausalLocalAttentionPaddedKeysMask(BlockDiagonalPaddedKeysMask):
    _window_size: int

    @classmethod
    def from_seqlens_local(
        cls, q_seqlen: Sequence[int], kv_padding: int, kv_seqlen: Sequence[int], window_size: int
    ) -> Any:
        return cls(*_padded(q_seqlen, kv_padding, kv_seqlen, None), window_size)


def __getattr__(name: str) -> NoReturn:
    raise _names.missing("xformers.ops.fmha.attn_bias", name, __all__)
