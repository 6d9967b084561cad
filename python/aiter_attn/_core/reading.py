# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Numbers and flags as callers pass them. Each is read by its argument's name, which every message
begins with; so does the value, with the allowed ones."""

from __future__ import annotations

import operator
from typing import Any, Final

__all__ = ["INT32_MAX", "flag", "integer", "number", "pair", "shown"]

INT32_MAX: Final = 2**31 - 1
_LONGEST: Final = 60


def shown(value: Any) -> str:
    """The value for a message: short and in one line, else its type."""
    try:
        text = repr(value)
    except Exception:  # the caller's class may do anything
        text = ""
    if text.isprintable() and 0 < len(text) <= _LONGEST:
        return text
    article = "an" if type(value).__name__[0] in "aeiou" else "a"
    return f"{article} {type(value).__name__}"


def flag(name: str, value: Any) -> bool:
    """A bool, also numpy's; or 0, 1."""
    if value is True:
        return True
    if value is False:
        return False
    if type(value).__name__ in ("bool", "bool_") or (type(value) is int and value in (0, 1)):
        return bool(value)
    raise TypeError(f"{name}: {shown(value)}; allowed: True or False")


def number(name: str, value: Any, allowed: str) -> float:
    """A number that float() takes, but no text."""
    if type(value) is float:
        return value
    try:
        if not isinstance(value, (str, bytes, bytearray)):
            return float(value)
    except OverflowError:
        raise ValueError(f"{name}: {shown(value)}; allowed: {allowed}") from None
    except (TypeError, ValueError, RuntimeError):
        pass
    raise TypeError(f"{name}: {shown(value)}; allowed: {allowed}")


def integer(
    name: str,
    value: Any,
    greatest: int = INT32_MAX,
    allowed: str = "",
    error: type[ValueError] = ValueError,
) -> int:
    """From 0 to greatest. allowed: that in words. error: what is raised for any other."""
    try:
        index = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: {shown(value)}; allowed: {allowed or 'an integer'}") from None
    if not 0 <= index <= greatest:
        raise error(f"{name}: {shown(index)}; allowed: {allowed or f'0 to {greatest}'}")
    return index


def pair(name: str, value: Any, allowed: str) -> tuple[int, int]:
    """Two integers of any size."""
    try:
        first, second = value
        return operator.index(first), operator.index(second)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{name}: {shown(value)}; allowed: {allowed}") from None
