# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The library's refusals, told by the arguments of the package's functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from aiter_attn._core.errors import AttnError, RoomError, UnsupportedError
from aiter_attn._core.options import FIELDS

__all__ = ["ARGUMENTS", "asked", "renamed"]

_Result = TypeVar("_Result")
_TOLD: Final = (TypeError, ValueError, AttnError)  # errors that are about arguments
# The arguments that fields of the C structs are, where those have another name.
ARGUMENTS: Final = {c: name for name, field in FIELDS.items() for c in field.c} | {
    "batch_index": "cache_batch_idx",
    "page_indices": "kv_page_indices",
    "page_indptr": "kv_indptr",
    "rotary_length": "the length of rotary_cos",
    "rotary_size": "twice the columns of rotary_cos",
    "seqlens_k": "cache_seqlens",
    "splits": "num_splits",
}


class renamed:
    """Errors of the package's functions in the names that another function's arguments have.

        with renamed({"q": "query"}):
            ...

    Args:
        names: by the package's.
    """

    # torch 2.6 traces no generator of contextlib.
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and isinstance(error, _TOLD):
            names = self._names
            words = rf"\b({'|'.join(names)})\b"
            error.args = (re.sub(words, lambda found: names[found[0]], str(error)),)


def asked(names: dict[str, str], ask: Callable[..., _Result], *given: Any) -> _Result:
    """ask(*given), an answer of the library. names: ARGUMENTS, or those of one function."""
    try:
        return ask(*given)
    except (ValueError, UnsupportedError) as error:
        field = getattr(error, "field", "").partition(".")[0]
        if not field:
            raise
        # The field wherever the message names it, and the one that it overlaps.
        pattern = rf"\b{field}\b|(?<=^{field} overlaps )\w+"
        message = re.sub(pattern, lambda found: names.get(found[0], found[0]), str(error))
        is_length = field == "seqlens_k" and getattr(error, "index", -1) >= 0
        raise (RoomError if is_length else type(error))(message) from None
