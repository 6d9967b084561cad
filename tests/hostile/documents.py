# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Documents that are nearly right, and bytes that are nothing, which hypothesis gives to
readers."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from hypothesis import strategies as st

# Values that stand in for any part of a document.
_ODD = (
    *(None, True, False, 0, 1, -1, 2**40, -(2**70), 0.5, float("inf"), float("nan")),
    *("", "x", "../x", "a" * 64, "\x00", "\u2028", "{python}", "{", "fp16"),
    *([], [[]], [None], ["x", "x"], [{}], {}, {"x": 1}, {"": {}}, {"name": "x"}),
)


def _places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    items = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, value in items:
        found += _places(value, (*path, key))
    return found


def _changed(document: Any, numbers: random.Random) -> Any:
    """The document with one part of it replaced, left out, doubled or renamed."""
    document = copy.deepcopy(document)
    path = numbers.choice(_places(document))
    if not path:
        return numbers.choice(_ODD)
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    last, odd = path[-1], copy.deepcopy(numbers.choice(_ODD))
    how = numbers.randrange(4)
    if how == 0:
        del holder[last]
    elif how == 1 and isinstance(holder, dict):
        holder[str(odd)] = holder.pop(last)
    elif how == 2 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[last]))
    else:
        holder[last] = odd
    return document


def near(document: Any) -> st.SearchStrategy[Any]:
    """A document of JSON's types with up to three changes."""

    def make(seed: int, count: int) -> Any:
        numbers, made = random.Random(seed), document
        for _ in range(count):
            made = _changed(made, numbers)
        return made

    return st.builds(make, st.integers(0, 2**32), st.integers(0, 3))


def json_texts(document: Any) -> st.SearchStrategy[str]:
    return st.one_of(near(document).map(canonical_json), broken(canonical_json(document)), _NOTHING)


def canonical_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def toml_texts(document: dict[str, Any]) -> st.SearchStrategy[str]:
    changed = near(document).filter(lambda d: isinstance(d, dict)).map(toml)
    return st.one_of(changed, broken(toml(document)), _NOTHING)


def broken(text: str) -> st.SearchStrategy[str]:
    """A text that is cut off, or has a word put in somewhere."""
    words = st.one_of(st.sampled_from(('"', "[", "]", "{", "=", "\n", "#", "\x00")), st.text())
    at = st.integers(0, len(text))
    return st.builds(lambda i, j, word: text[:i] + word + text[j:], at, at, words)


def broken_bytes(data: bytes) -> st.SearchStrategy[bytes]:
    """Bytes of which some are others, or missing; most changes are close to the start."""
    change = st.tuples(st.one_of(st.integers(0, 256), st.integers(0, len(data))), st.binary())

    def make(changes: list[tuple[int, bytes]], end: int) -> bytes:
        made = bytearray(data)
        for at, new in changes:
            made[at : at + len(new)] = new
        return bytes(made[:end])

    ends = st.one_of(st.just(len(data)), st.integers(0, len(data)))
    return st.one_of(st.builds(make, st.lists(change, max_size=4), ends), st.binary())


_NOTHING = st.one_of(
    st.text(max_size=40),
    st.sampled_from(('"', "[" * 50, '{"a":' * 50, "9" * 5000, "\ufeff{}", "null", "[]", "{}")),
)


def toml(value: dict[str, Any]) -> str:
    """TOML of JSON's types; a value that TOML has no word for (null, a name with a line break) is
    left in JSON's spelling, which is no TOML."""
    return "".join(f"{json.dumps(key)} = {_inline(part)}\n" for key, part in value.items())


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return {"Infinity": "inf", "NaN": "nan"}.get(word := json.dumps(value), word)
