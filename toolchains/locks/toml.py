# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Reads the TOML of this folder's neighbours: Python 3.10, which bazelw runs on, has no tomllib.

That is a part of TOML: tables, also nested ones, keys that are bare or quoted, and values that are
texts in one line, booleans, numbers without exponents, and arrays and inline tables of such. The
rest of TOML is refused.
"""

from __future__ import annotations

import json
import re
from typing import Any

_BLANK = re.compile(r"[ \t]*")
_SPACE = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_END = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"(?!"")(?:[^"\\\n]|\\["\\bfnrt]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*"')
_LITERAL = re.compile(r"'(?!'')[^'\n]*'")
_LONG_ESCAPE = re.compile(r"\\(\\|U[0-9A-Fa-f]{8})")
_WORD = re.compile(r"true\b|false\b|[+-]?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]+)?(?![\w.:+-])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class TomlError(ValueError):
    """The text is not TOML, or no part of it that is read here."""


def _text(basic: str) -> str:
    """A text between double quotes: TOML's are JSON's, but for one escape and tabs."""

    def short(match: re.Match[str]) -> str:
        return match[0] if match[1] == "\\" else json.dumps(chr(int(match[1][1:], 16)))[1:-1]

    try:
        read: str = json.loads(_LONG_ESCAPE.sub(short, basic), strict=False)
        read.encode()
    except (ValueError, OverflowError) as e:
        raise TomlError(f"{basic} is no text") from e
    return read


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.at = 0
        self.inlines: set[int] = set()  # the ids of tables that no [name] adds to
        found = _CONTROL.search(self.text)
        if found:
            self.at = found.start()
            raise self.error(f"a control character, {found[0]!r}")

    def error(self, problem: str) -> TomlError:
        line = self.text.count("\n", 0, self.at) + 1
        rest = self.text[self.at :].split("\n", 1)[0][:40]
        return TomlError(f"line {line}: {problem}, at {rest!r}")

    def take(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match[0]

    def sign(self, sign: str) -> bool:
        if not self.text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True

    def string(self) -> str | None:
        basic = self.take(_BASIC)
        if basic is not None:
            return _text(basic)
        literal = self.take(_LITERAL)
        return None if literal is None else literal[1:-1]

    def key(self) -> list[str]:
        """A key, in its parts."""
        parts = []
        while True:
            self.take(_BLANK)
            part = self.string()
            if part is None:
                part = self.take(_BARE)
            if part is None:
                raise self.error("want a key")
            parts.append(part)
            self.take(_BLANK)
            if not self.sign("."):
                return parts

    def value(self) -> Any:
        string = self.string()
        if string is not None:
            return string
        word = self.take(_WORD)
        if word is not None:
            if word in ("true", "false"):
                return word == "true"
            return float(word) if "." in word else int(word)
        if self.sign("{"):
            return self.inline()
        if not self.sign("["):
            raise self.error("want a text in one line, true, false, a number, an array or a table")
        values: list[Any] = []
        while True:
            self.take(_SPACE)
            if self.sign("]"):
                return values
            values.append(self.value())
            self.take(_SPACE)
            if not self.sign(",") and not self.text.startswith("]", self.at):
                raise self.error("want a comma or the end of the array")

    def pair(self, table: dict[str, Any]) -> None:
        """Puts a key with its value into its table."""
        start = self.at
        parts = self.key()
        if not self.sign("="):
            raise self.error("want a key and =")
        self.take(_BLANK)
        value = self.value()
        if len(parts) > 1 or parts[0] in table:
            self.at = start
            raise self.error("a key with dots, or one that is there already")
        table[parts[0]] = value

    def inline(self) -> dict[str, Any]:
        """A table in one line, behind its {."""
        table: dict[str, Any] = {}
        self.inlines.add(id(table))
        self.take(_BLANK)
        if self.sign("}"):
            return table
        while True:
            self.pair(table)
            self.take(_BLANK)
            if self.sign("}"):
                return table
            if not self.sign(","):
                raise self.error("want a comma or the end of the table")

    def end(self) -> None:
        if self.take(_END) is None:
            raise self.error("want the end of the line")


def loads(text: str) -> dict[str, Any]:
    """Returns the tables of a text. Raises TomlError, and RecursionError for nests without end."""
    reader = _Reader(text)
    root: dict[str, Any] = {}
    table = root
    headed = set()
    while True:
        reader.take(_SPACE)
        if reader.at == len(reader.text):
            return root
        start = reader.at
        if reader.sign("["):
            parts = reader.key()
            if not reader.sign("]"):
                raise reader.error("want the end of a table's name, ]")
            table = root
            for part in parts:
                table = table.setdefault(part, {})
                if not isinstance(table, dict) or id(table) in reader.inlines:
                    break
            added_to = isinstance(table, dict) and id(table) not in reader.inlines
            if not added_to or tuple(parts) in headed:
                reader.at = start
                raise reader.error("a table that is there already")
            headed.add(tuple(parts))
        else:
            reader.pair(table)
        reader.end()
