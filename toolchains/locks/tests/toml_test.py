# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The own TOML reader, beside Python's, which is not there before 3.11."""

from __future__ import annotations

import pathlib
import random

import pytest
import tomllib

from toolchains.locks import toml

_TOOLCHAINS = pathlib.Path(toml.__file__).parent.parent
_FILES = ("bazel/offline.toml", "debian/packages.toml", "pypi/requirements.toml")
_SIGNS = "[]\"'\\=.,#\n 01+-uex_{}\t\r"
_ODD = """\
whole = -12 # a comment
part = -0.25
"quoted key" = "\\u00e9\\U0001F600\\t\\\\U \\"x\\""
'literal key' = 'C:\\no\\escape'
list = [1, "two", [true, false], # three
]
[c.d]
e = ""
[c]
f = []
inline = { "g.h" = "i", j = [{}, {k = 1}], l = {m = true} }
[c.d.e2]
"""


@pytest.mark.parametrize("file", _FILES)
def test_the_files_are_read_as_python_reads_them(file: str) -> None:
    text = (_TOOLCHAINS / file).read_text(encoding="utf-8")
    assert toml.loads(text) == tomllib.loads(text)


@pytest.mark.parametrize("seed", range(4))
def test_a_changed_text_is_read_as_python_reads_it_or_refused(seed: int) -> None:
    choose = random.Random(seed)  # noqa: S311  (the same in each run)
    texts = [_ODD, *((_TOOLCHAINS / file).read_text(encoding="utf-8")[:600] for file in _FILES)]
    counts = {"read": 0, "refused": 0}
    for _ in range(1500):
        text = list(choose.choice(texts))
        for _ in range(choose.randint(1, 3)):
            place = choose.randrange(len(text))
            text[place : place + choose.randint(0, 2)] = choose.choice(_SIGNS)
        changed = "".join(text)
        try:
            got = toml.loads(changed)
        except toml.TomlError as refused:
            assert str(refused)
            counts["refused"] += 1
            continue
        assert got == tomllib.loads(changed)
        counts["read"] += 1
    assert min(counts.values()) > 100


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1\na = 2\n", "line 2: .*there already, at 'a = 2'"),
        ("[a]\n[b]\n[a]\n", "line 3: a table that is there already"),
        ("a = 1979-05-27\n", "line 1: want a text in one line, true, .*at '1979-05-27'"),
        ('\n\na = """x"""\n', "line 3: want a text in one line"),
        ("[[a]]\n", r"want a key, at '\[a\]\]'"),
        ('a = ["x" "y"]\n', "want a comma or the end of the array, at '\"y\"]'"),
        ("a = {b = 1 c = 2}\n", "want a comma or the end of the table, at 'c = 2}'"),
        ("a = {b = {}}\n[a.b.c]\n", "line 2: a table that is there already"),
        ("a = {b = 1, b = 2}\n", "there already, at ' b = 2}'"),
        ('a = "x" y\n', "want the end of the line, at ' y'"),
        ('a = "\\ud800"\n', "is no text"),
        ("a = 'x\x00'\n", r"a control character, '\\x00'"),
    ],
)
def test_errors_name_the_line(text: str, message: str) -> None:
    with pytest.raises(toml.TomlError, match=message):
        toml.loads(text)
