# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""One launch of a decoding object of AITER's, with every check of the emulator on.

Buffers end where their data ends. Keys and values lie in blocks (pages) in a random order, and
block 0 is of no sequence. Outputs are judged against float64 of the inputs as they are stored.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import numpy as np
from gfxemu import float8

from kernels.aiter_asm import decode
from kernels.aiter_asm.decode import DecodeObject
from tests.emulation.aiter_asm.launches import LOG2E, Result, Session
from tests.emulation.harness.reference import UNIT, Expected, from_storage, to_storage

Array = np.ndarray

# Half a unit in the last place of E4M3; a whole one of int8, to which kernels truncate, of the
# largest number.
_UNIT = UNIT | {"fp8": 2.0**-4, "int8": 1 / 127}
_EPS = UNIT["fp32"]
_NAN16 = 0x7FFF
_HEAD_PAGED = 128
_HEAD_LATENT, _VALUE_LATENT = 576, 512
# Of E4M3 inputs of latent attention.
SCALE_Q, SCALE_KV = 0.02, 0.03125


@dataclasses.dataclass(frozen=True)
class Problem:
    """Sequences of so many keys, with `tokens` queries each; `heads` query heads that share a head
    of keys (0: the object's). `unseen`: keys behind the last of a sequence are NaN. `splits`: parts
    of the keys. `scale_kv` is of E4M3 keys of latent attention."""

    name: str
    lengths: tuple[int, ...]
    tokens: int
    heads: int = 0
    unseen: bool = False
    splits: int = 1
    page: int = 1
    scale_kv: float = SCALE_KV

    def __str__(self) -> str:
        return f"{self.name}, {self.tokens} queries each"


@functools.cache
def objects() -> list[DecodeObject]:
    forward, text = (
        Path(f"kernels/aiter_asm/{name}.toml").read_text("utf-8") for name in ("forward", "decode")
    )
    return decode.read(forward, text)


def _nan(dtype: str, arch: str) -> int:
    """The encoding of NaN; int8 has none."""
    return {"fp8": float8.of_arch(arch).nan, "int8": 127}.get(dtype, _NAN16)


def _per_token(x: Array, dtype: str, arch: str) -> tuple[Array, Array, Array]:
    """8-bit codes of [...][head size], a scale for each head, and the numbers they stand for."""
    form = float8.of_arch(arch)
    largest = 127.0 if dtype == "int8" else form.largest
    scale = (np.abs(x).max(axis=-1, keepdims=True) / largest).astype(np.float32)
    if dtype == "int8":
        numbers = np.clip(np.rint(x / scale), -127, 127)
        codes = numbers.astype(np.int8).view(np.uint8)
    else:
        codes = form.encode((x / scale).astype(np.float32)).astype(np.uint8)
        numbers = form.decode(codes)
    return codes, scale[..., 0], numbers * scale.astype(np.float64)


def _stored(x: Array, dtype: str, scale: float, arch: str) -> tuple[Array, Array]:
    """Of latent attention: encodings, and the numbers they stand for."""
    if dtype != "fp8":
        encodings = to_storage(x, dtype)
        return encodings, from_storage(encodings, dtype)
    form = float8.of_arch(arch)
    codes = form.encode((x / scale).astype(np.float32)).astype(np.uint8)
    return codes, form.decode(codes) * scale


def _rounding(x: Array, dtype: str) -> Array:
    """The size of the error of rounding, along the last axis."""
    size: Array = np.abs(x)
    if dtype == "int8":
        size = size.max(axis=-1, keepdims=True)
    return size * _UNIT[dtype]


def _attention(
    chosen: DecodeObject, q: Array, k: Array, v: Array, scale: float, rounded_q: bool, out: str
) -> dict[str, Expected]:
    """o and lse of one sequence; q is [query][head][size], k and v [key][head][size]."""
    scores = scale * np.einsum("ihd,jhd->hij", q, k)
    sums = scale * np.sqrt(np.einsum("ihd,jhd->hij", q * q, k * k))
    error = np.zeros_like(sums)
    if rounded_q:
        errors = _rounding(q, chosen.queries)
        error = scale * np.sqrt(np.einsum("ihd,jhd->hij", errors**2, k * k))
    if chosen.mask == "causal":
        last = np.arange(len(q))[:, None] + len(k) - len(q)
        scores = np.where(np.arange(len(k)) <= last, scores, -np.inf)
    top = scores.max(axis=2, keepdims=True)
    p = np.exp(scores - top)
    total = p.sum(axis=2, keepdims=True)
    lse = (top + np.log(total))[..., 0]
    p /= total
    seen = p > 0
    exact = np.where(seen, _EPS * (2 * np.abs(scores) + sums + 2 * np.abs(lse)[..., None]), 0.0)
    spread = p * np.sqrt(exact**2 + np.where(seen, error, 0.0) ** 2)
    spread = np.sqrt(spread**2 + (p * np.sqrt((spread**2).sum(axis=2, keepdims=True))) ** 2)
    values = np.abs(v)
    # 8-bit kernels round p times the scale of v: the scale is as the largest number of v's row.
    scales = values.max(axis=2).T[:, None] if chosen.probabilities == "int8" else 1.0
    p_error = np.sqrt((_rounding(p * scales, chosen.probabilities) / scales) ** 2 + spread**2)
    o = np.einsum("hij,jhd->ihd", p, v)
    from_p = np.einsum("hij,jhd->ihd", p_error**2, values**2)
    unit = np.sqrt(from_p + (_UNIT[out] * o) ** 2)
    lse_unit = (
        2 * _EPS * (1 + np.abs(lse)) + exact.max(axis=2) + np.where(seen, error, 0).max(axis=2)
    )
    return {"o": Expected(o, unit), "lse": Expected(lse.T, lse_unit.T)}


def _joined(parts: list[dict[str, Expected]]) -> dict[str, Expected]:
    return {
        name: Expected(
            np.concatenate([p[name].value for p in parts]),
            np.concatenate([p[name].unit for p in parts]),
        )
        for name in parts[0]
    }


def _starts(lengths: tuple[int, ...] | list[int]) -> Array:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def launch(
    chosen: DecodeObject, problem: Problem, *, late: bool = True, schedule: str = "sliced:8"
) -> Result:
    """Without `late`, the results of loads are there at once."""
    run = paged if chosen.kind == "paged" else latent
    return run(chosen, problem, late, schedule)


def paged(chosen: DecodeObject, problem: Problem, late: bool, schedule: str) -> Result:
    rng = np.random.default_rng(1)
    assert chosen.page
    size, block, heads_k = _HEAD_PAGED, chosen.page, 2
    group = problem.heads or chosen.heads
    batch, tokens = len(problem.lengths), problem.tokens
    blocks = [-(-length // block) for length in problem.lengths]
    shape = (sum(blocks) + 1, heads_k, block, size)
    stored_q = to_storage(rng.standard_normal((batch * tokens, heads_k * group, size)),
                          chosen.q_dtype)  # fmt: skip
    order = rng.permutation(sum(blocks)) + 1
    tables = np.zeros((batch, max(blocks)), np.int32)
    for row, (first, count) in enumerate(zip(_starts(blocks), blocks, strict=False)):
        tables[row, :count] = order[first : first + count]
    stored, scales, numbers = [], {}, []
    for name in "kv":
        x = rng.standard_normal(shape)
        if chosen.kv_dtype == chosen.q_dtype:
            codes = to_storage(x, chosen.kv_dtype)
            numbers.append(from_storage(codes, chosen.kv_dtype))
        else:
            codes, scale, exact = _per_token(x, chosen.kv_dtype, chosen.arch)
            numbers.append(exact)
            scales[f"scales_{name}"] = scale
        if problem.unseen:
            behind = np.ones((shape[0], block), bool)
            for row, length in enumerate(problem.lengths):
                for place in range(blocks[row]):
                    behind[tables[row, place], : length - place * block] = False
            by_head = np.broadcast_to(behind[:, None], shape[:3])
            codes[by_head] = _nan(chosen.kv_dtype, chosen.arch)
            if scales:
                scales[f"scales_{name}"][by_head] = np.nan
        stored.append(codes)
    items = 16 // stored[0].itemsize  # that lie together
    k = stored[0].reshape(*shape[:3], size // items, items).transpose(0, 1, 3, 2, 4)
    v = stored[1].reshape(*shape[:2], block // items, items, size).swapaxes(3, 4)
    o = np.zeros(stored_q.shape, np.uint16)
    with Session(chosen.arch, schedule, late=late) as session:
        session.place({
            "q": stored_q, "k": np.ascontiguousarray(k), "v": np.ascontiguousarray(v),
            "block_tables": tables, "lengths_k": np.array(problem.lengths, np.int32),
            "seqstart_q": _starts([tokens] * batch), **scales,
        })  # fmt: skip
        session.output("o", o, np.zeros(o.nbytes, bool))
        values = {
            "scales_k": 0,
            "scales_v": 0,
            **session.addresses,
            "scale_log2e": float(np.float32(LOG2E / np.sqrt(size))),
            "stride_block_tables": tables.shape[1],
            "heads_k": heads_k,
            "stride_q": heads_k * group * size * 2,
            "stride_block": stored[0][0].nbytes,
            "head_stride_k": stored[0][0, 0].nbytes,
            "heads_q_per_head_k": group,
        }
        session.launch(chosen, (heads_k, batch, 1), values)
    result = session.result
    if result.fault:
        return result
    parts = []
    q = from_storage(stored_q, chosen.q_dtype).reshape(batch, tokens, heads_k * group, size)
    for row, length in enumerate(problem.lengths):
        keys, rows = (
            np.concatenate([x[b] for b in tables[row, : blocks[row]]], axis=1)
            .transpose(1, 0, 2)[:length]
            .repeat(group, axis=1)
            for x in numbers
        )
        parts.append(
            _attention(chosen, q[row], keys, rows, size**-0.5,
                       chosen.queries != chosen.q_dtype, chosen.q_dtype)
        )  # fmt: skip
    result.errors["o"] = _joined(parts)["o"].error(from_storage(o, chosen.q_dtype))
    return result


def _items(problem: Problem, starts: Array, page: int) -> list[list[int]]:
    """A list of work, an item for each workgroup: the first sequence whole, of the others each in
    two parts. Keys and their starts are counted in all pages' keys."""
    items, parts = [], 0
    for row, length in enumerate(problem.lengths):
        first, last = int(starts[row]) * page, int(starts[row]) * page + length
        end = int(starts[row + 1]) * page
        queries = [row * problem.tokens, (row + 1) * problem.tokens]
        cut = first + length // 2 // 16 * 16
        for begin, stop in [(first, last)] if row == 0 else [(first, cut), (cut, last)]:
            place = -1 if row == 0 else parts * problem.tokens
            parts += row > 0
            items.append(
                [row, place, *queries, begin, stop, (end if page == 1 else last) - stop, 0]
            )
    return items


def latent(chosen: DecodeObject, problem: Problem, late: bool, schedule: str) -> Result:
    rng = np.random.default_rng(1)
    heads, page, batch, tokens = chosen.heads, problem.page, len(problem.lengths), problem.tokens
    pages = [-(-length // page) for length in problem.lengths]
    starts, total_q = _starts(pages), batch * tokens
    q, exact_q = _stored(rng.standard_normal((total_q, heads, _HEAD_LATENT)), chosen.q_dtype,
                         SCALE_Q, chosen.arch)  # fmt: skip
    kv, exact_kv = _stored(
        rng.standard_normal((sum(pages) + 1, page, _HEAD_LATENT)), chosen.kv_dtype,
        problem.scale_kv, chosen.arch,
    )  # fmt: skip
    order = (rng.permutation(sum(pages)) + 1).astype(np.int32)
    if problem.unseen:
        kv[0] = _nan(chosen.kv_dtype, chosen.arch)
    listed = chosen.work == "list"
    items = _items(problem, starts, page) if listed else []
    # With one part the first kernel gives outputs, but for the smallest one.
    final = not listed and problem.splits == 1 and chosen.rows > 16
    parts = sum(item[1] >= 0 for item in items)
    rows = (parts * tokens, 1) if listed else (total_q, problem.splits)
    o_acc = np.zeros((*rows, heads, _VALUE_LATENT), np.uint16 if final else np.float32)
    lse_acc = np.zeros((*rows, heads), np.float32)
    o = np.zeros((total_q, heads, _VALUE_LATENT), np.uint16)
    written = {n: np.zeros(a.nbytes, bool) for n, a in (("o_acc", o_acc), ("lse_acc", lse_acc))}
    prefill = chosen.work == "prefill"
    with Session(chosen.arch, schedule, late=late) as session:
        session.place({
            "q": q, "kv": kv, "seqstart_k": starts, "pages": order,
            "last_page_lengths": np.array([(x - 1) % page + 1 for x in problem.lengths], np.int32),
            "seqstart_q": _starts([tokens] * batch),
            "scale_q": np.array([SCALE_Q], np.float32),
            "scale_kv": np.array([problem.scale_kv], np.float32),
        })  # fmt: skip
        if listed:
            session.place({
                "item_starts": np.arange(len(items) + 1, dtype=np.int32),
                "items": np.array(items, np.int32),
            })  # fmt: skip
            lists = [session.addresses["item_starts"], session.addresses["items"], *[0] * 8]
            session.place({"work": np.array(lists, np.uint64)})
        else:
            session.place({"work": _starts([problem.splits] * batch)})
        session.output("o_acc", o_acc, written["o_acc"])
        session.output("lse_acc", lse_acc, written["lse_acc"])
        session.output("o", o, np.zeros(o.nbytes, bool))
        values = {
            **session.addresses,
            "scale": float(np.float32(_HEAD_LATENT**-0.5)),
            "rows": heads * (1 if prefill else tokens),
            "splits": problem.splits,
            "stride_q": q[0].nbytes * (1 if prefill else tokens),
            "stride_page": kv[0].nbytes,
            "page_log2": page.bit_length() - 1,
            "splits_of_16_bits": problem.splits,
        }
        tiles = -(-tokens * heads // chosen.rows)
        grid = (len(items), 1, 1) if listed else (tiles, batch, problem.splits)
        session.launch(chosen, grid, values)
    result = session.result
    if result.fault:
        return result
    sequences = []
    for row, length in enumerate(problem.lengths):
        keys = exact_kv[order[starts[row] : starts[row + 1]]].reshape(-1, 1, _HEAD_LATENT)[:length]
        keys = keys.repeat(heads, axis=1)
        own = slice(row * tokens, (row + 1) * tokens)
        out = "bf16" if final or (listed and row == 0) else "fp32"
        sequences.append(
            _attention(chosen, exact_q[own], keys, keys[..., :_VALUE_LATENT], _HEAD_LATENT**-0.5,
                       False, out)
        )  # fmt: skip
    if final:
        got = from_storage(o_acc[:, 0], "bf16")
        result.errors["o"] = _joined(sequences)["o"].error(got)
        return result
    if listed:
        whole = from_storage(o[:tokens], "bf16")
        result.errors["o, whole"] = sequences[0]["o"].error(whole)
        by_part = (batch - 1, 2, tokens, heads)
        o_acc = o_acc.reshape(*by_part, -1).swapaxes(1, 2).reshape(-1, 2, heads, _VALUE_LATENT)
        lse_acc = lse_acc.reshape(by_part).swapaxes(1, 2).reshape(-1, 2, heads)
        marks: Array = np.ones(lse_acc.shape, bool)
        sequences = sequences[1:]
    else:
        # Parts without a key are not written.
        marks = np.asarray(written["lse_acc"].reshape(*lse_acc.shape, 4).all(axis=-1))
    joined = _joined(sequences)
    lse = np.where(marks, lse_acc.astype(np.float64), -np.inf)
    top = lse.max(axis=1, keepdims=True)
    weights = np.exp(lse - np.where(np.isfinite(top), top, 0.0))
    total = weights.sum(axis=1)
    terms = np.where(marks[..., None], weights[..., None] * o_acc, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        result.errors["o"] = joined["o"].error(terms.sum(axis=1) / total[..., None])
        result.errors["lse"] = joined["lse"].error(top[:, 0] + np.log(total))
    return result
