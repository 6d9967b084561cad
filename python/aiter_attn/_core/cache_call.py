# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""One call over a key-value cache: its arrays, its problem, and the append that comes first."""

from __future__ import annotations

import functools
import operator
from typing import Any, ClassVar, NamedTuple, SupportsIndex

from aiter_attn import _C
from aiter_attn._core import cache_problems, problems, reading
from aiter_attn._core.adapters import Array, adapter_of
from aiter_attn._core.adapters.generic import check_contiguous, check_rows
from aiter_attn._core.arrays import Arrays, those_given
from aiter_attn._core.errors import RoomError
from aiter_attn._core.options import Options
from aiter_attn._core.refusals import ARGUMENTS, asked

__all__ = ["CacheCall", "Keys"]


class Keys(NamedTuple):
    """The arrays of keys and values, and their arguments' names."""

    k: Array
    v: Array
    names: tuple[str, str] = ("k", "v")


@functools.cache
def _names(k: str, v: str) -> tuple[dict[str, str], dict[str, str]]:
    """The arguments' names by the library's, and the other way; of the arguments that keys and
    values are."""
    names = ARGUMENTS | {"k": k, "v": v, "k_new": "k", "v_new": "v"}
    return names, {k: "k", v: "v"} | {name: field for field, name in ARGUMENTS.items()}


class CacheCall(Arrays):
    """sequences: (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k) of a varlen call, where
    cu_seqlens_k is None with page_list, (kv_indptr, kv_page_indices)."""

    takers: ClassVar[dict[str, str]] = {
        "out": "mha_batch_prefill",
        "workspace": "flash_attn_with_kvcache, flash_attn_varlen_func",
    }

    def __init__(
        self,
        q: Array,
        keys: Keys,
        *,
        sequences: tuple[Array, Array | None, SupportsIndex, SupportsIndex] | None = None,
        block_table: Array | None = None,
        page_list: tuple[Array, Array] | None = None,
        cache_batch_idx: Array | None = None,
        options: Options,
        alibi_slopes: Array | None = None,
        sink: Array | None = None,
        splits: SupportsIndex = 0,
        stream: int | None = None,
    ) -> None:
        k, v = keys.names
        given: dict[str, Any] = {"q": q, k: keys.k, v: keys.v}
        if sequences is not None:
            given["cu_seqlens_q"] = sequences[0]
            if page_list is None:
                given["cu_seqlens_k"] = sequences[1]
            else:
                given["kv_indptr"], given["kv_page_indices"] = page_list
        given |= those_given(
            block_table=block_table,
            alibi_slopes=alibi_slopes,
            sink=sink,
            cache_batch_idx=cache_batch_idx,
        )
        super().__init__(given, stream)
        self._keys = keys
        # The arguments that the library's fields are, and the arrays by its names.
        self._names, fields = _names(k, v)
        self._arrays = {fields.get(name, name): x for name, x in self.tensors.items()}
        self._appended: tuple[dict[str, int], dict[str, _C.Tensor]] | None = None
        self._keys_left: tuple[list[int], list[int]] | None = None

        lengths = None
        if sequences is not None:
            starts = self._arrays["cu_seqlens_q"]
            batch = problems.batch_of(starts, self._arrays.get("cu_seqlens_k", starts))
            lengths = problems.lengths(batch, *sequences[2:])
        slopes = self._arrays.get("alibi_slopes")
        self._over = cache_problems.cached(
            self._arrays["q"],
            self._arrays["k"],
            self._arrays["v"],
            keys.names,
            block_table=self._arrays.get("block_table"),
            page_list=page_list is not None,
            chooses_entries=cache_batch_idx is not None,
            sequences=lengths,
            options=options,
            alibi_slopes=slopes,
            splits=splits,
        )
        self.attention = self._over.attention
        self.problem = self.attention.problem
        if self._stream is not None:
            self.problem = self.problem.on(*self._device, self._stream)
        self._numbers = self._over.numbers | {"splits": self._over.splits}
        if slopes is not None and len(slopes.shape) == 2:
            self._numbers["alibi_stride_batch"] = slopes.strides[0]
        if sink is not None:
            problems.check_sink(self._arrays["sink"], self.problem.heads_q)
            check_contiguous("sink", self._arrays["sink"])
        if cache_batch_idx is not None:
            self._check_numbers("batch_index", (self.problem.batch,), "[batch]")
        if page_list is not None:
            self._check_page_list()
        for field in ("q", "k", "v", "alibi_slopes"):
            if field in self._arrays:
                check_rows(self._name(field), self._arrays[field])
        for field in ("cu_seqlens_q", "cu_seqlens_k", "block_table"):
            if field in self._arrays:
                check_contiguous(field, self._arrays[field])

    def set_lengths(self, given: Any) -> None:
        """given: cache_seqlens, an int or an int32 array [batch]."""
        self._lend_lengths(given if isinstance(given, Array) else self._same_lengths(given, 0))

    def append(
        self,
        k: Array,
        v: Array,
        cache_seqlens: Any,
        tables: tuple[Array, Array] | None,
        interleaved: bool,
    ) -> None:
        """Has forward() append k and v first, behind cache_seqlens keys of each sequence; tables:
        (rotary_cos, rotary_sin)."""
        for name, array in zip(self._keys.names, self._keys[:2], strict=True):
            if not adapter_of(name, array).writable:
                raise ValueError(
                    f"{name}: {type(array).__name__} is immutable, and k and v are appended in "
                    "place; pass numpy, torch or cupy arrays"
                )
            if self.tensors[name].read_only:
                raise ValueError(
                    f"{name}: is read-only, and k and v are appended in place; pass writable arrays"
                )
        new_k, new_v = self._lend("k_new", k), self._lend("v_new", v)
        turned = cache_problems.Rotary()
        if tables is not None:
            cos, sin = self._lend("rotary_cos", tables[0]), self._lend("rotary_sin", tables[1])
            turned = cache_problems.rotary(cos, sin, self._arrays["q"], interleaved)
            check_contiguous("rotary_cos", cos)
            check_contiguous("rotary_sin", sin)
        numbers = cache_problems.appended(self._over, new_k, new_v, turned)
        check_rows("k", new_k)
        check_rows("v", new_v)

        new = numbers["seqlen_new"]
        if isinstance(cache_seqlens, Array):
            self._lend_lengths(cache_seqlens)
            adapter = adapter_of("cache_seqlens", cache_seqlens)
            longer = adapter.plus("cache_seqlens", cache_seqlens, new)
        else:
            self._lend_lengths(self._same_lengths(cache_seqlens, new))
            longer = self._same_lengths(cache_seqlens, new, plus=new)
        if tables is not None:
            for name in self._keys.names:
                if self.tensors[name].overlaps(self._arrays["q"]):
                    raise ValueError(
                        f"{name} overlaps q: the call writes to {name}; pass memory of its own"
                    )
            # The library rotates it in place, and sees the copy alone.
            self._lend("q", self._adapter.copy("q", self._lead))
        of_append = dict(self._arrays)
        for field in ("k_new", "v_new", "rotary_cos", "rotary_sin"):
            self._arrays.pop(field, None)
        for field in ("alibi_slopes", "sink"):
            of_append.pop(field, None)
        if tables is None:
            del of_append["q"]
        self._appended = self._over.numbers | numbers, of_append
        self._lend_lengths(longer)

    def leave_out(self, cache_leftpad: Array) -> None:
        """Has forward() attend to the keys behind the first cache_leftpad, int32 [batch], of each
        sequence. Comes after set_lengths() or append()."""
        if self._stream is not None:
            raise cache_problems.no_leftpad()
        for name, array in zip(self._keys.names, self._keys[:2], strict=True):
            if not hasattr(array, "reshape"):
                raise TypeError(
                    f"{name}: {type(array).__name__} has no reshape(), by which cache_leftpad sees "
                    "keys one by one; pass numpy, torch or jax arrays, or cache_leftpad=None"
                )
        batch, room = self.problem.batch, self._over.room
        leftpad = self.borrow("cache_leftpad", cache_leftpad)
        cache_problems.check_numbers("cache_leftpad", leftpad, (batch,), "[batch]")
        check_contiguous("cache_leftpad", leftpad)
        lengths, entries = self._arrays.get("seqlens_k"), self._arrays.get("batch_index")
        self._keys_left = cache_problems.keys_left(
            [lengths.number(b) if lengths else room for b in range(batch)],
            [leftpad.number(b) for b in range(batch)],
            [entries.number(b) if entries else b for b in range(batch)],
            (self._over.numbers["entries"], room),
            self._appended[0]["seqlen_new"] if self._appended else 0,
        )

    def forward(self, out: Any, wants_lse: bool, workspace: Array | None = None) -> tuple[Any, Any]:
        """(out, lse): out is the array given, or a new one for None; lse is None if not wanted."""
        outputs = {"out": (out, self.attention.out)}
        if wants_lse:
            outputs["lse"] = None, self.attention.lse
        made = self.written(outputs, self._run, self._workspace_size, workspace)
        return made[0], made[1] if wants_lse else None

    def _workspace_size(self) -> int:
        self._arrays["out"] = self.tensors["out"]
        if "lse" in self.tensors:
            self._arrays["lse"] = self.tensors["lse"]
        ask = _C.kvcache_fwd_workspace_size
        return asked(self._names, ask, self.problem, self._numbers, self._arrays)

    def _run(self) -> None:
        if "workspace" in self.tensors:
            self._arrays["workspace"] = self.tensors["workspace"]
        numbers, arrays = self._numbers, self._arrays
        if self._keys_left is None or self._appended is not None:
            asked(self._names, _C.kvcache_fwd, self.problem, numbers, arrays, self._appended)
        if self._keys_left is not None:
            # Once more, where all is checked and appended: without the keys that are left out.
            left = self._key_by_key(numbers, arrays, *self._keys_left)
            asked(self._names, _C.kvcache_fwd, self.problem, *left)

    def _key_by_key(
        self,
        numbers: dict[str, int],
        arrays: dict[str, _C.Tensor],
        starts: list[int],
        keys: list[int],
    ) -> tuple[dict[str, int], dict[str, _C.Tensor]]:
        """The call with every key of the cache as a page. A copy by reshape() is made once the new
        keys are there."""
        count = numbers["entries"] * self._over.room
        numbers = numbers | {"entries": count, "page_size": 1}
        arrays = {x: y for x, y in arrays.items() if x not in ("seqlens_k", "batch_index")}
        for field, name, cache in zip("kv", self._keys.names, self._keys[:2], strict=True):
            rows: Any = cache
            arrays[field] = self.borrow(name, rows.reshape((count, *rows.shape[2:])))
        for field, listed in (("page_indptr", starts), ("page_indices", keys)):
            made = self._adapter.integers("cache_leftpad", self._lead, listed)
            arrays[field] = self.borrow(field, made)
        return numbers, arrays

    def _name(self, field: str) -> str:
        return self._names.get(field, field)

    def _lend(self, field: str, array: Any) -> _C.Tensor:
        tensor = self._arrays[field] = self.borrow(self._name(field), array)
        return tensor

    def _lend_lengths(self, array: Any) -> None:
        self._lend("seqlens_k", array)
        self._check_numbers("seqlens_k", (self.problem.batch,), "[batch]")

    def _check_page_list(self) -> None:
        batch = self.problem.batch
        self._check_numbers("page_indptr", (batch + 1,), "[batch + 1]")
        listed = self._arrays["page_indices"]
        self._check_numbers("page_indices", (listed.shape or (0,))[:1], "[keys of all sequences]")
        if self._stream is None and self._arrays["page_indptr"].number(batch) > listed.shape[0]:
            raise ValueError(
                f"kv_indptr[{batch}] is {self._arrays['page_indptr'].number(batch)}; allowed here: "
                f"up to {listed.shape[0]}, the entries of kv_page_indices"
            )

    def _check_numbers(self, field: str, shape: tuple[int, ...], dims: str) -> None:
        name, tensor = self._name(field), self._arrays[field]
        cache_problems.check_numbers(name, tensor, shape, dims)
        check_contiguous(name, tensor)

    def _same_lengths(self, given: Any, new: int, plus: int = 0) -> Any:
        """An array of cache_seqlens as an int, and plus more."""
        most = self._over.room - new
        try:
            length = operator.index(given)
        except TypeError:
            raise TypeError(
                f"cache_seqlens: {reading.shown(given)}; allowed: an int, or an int32 array [batch]"
            ) from None
        less = f" less the new keys, {new}" if new else ""
        allowed = f"0 to {most}, the room of a sequence{less}"
        length = reading.integer("cache_seqlens", length, most, allowed, RoomError) + plus
        return self._adapter.full("cache_seqlens", self._lead, (self.problem.batch,), length)
