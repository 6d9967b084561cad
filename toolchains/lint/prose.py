# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Finds sentences of comments, docstrings and documents that do not name their subject."""

from __future__ import annotations

import ast
import io
import itertools
import posixpath
import re
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

# Behind a sentence's end or the licence; at the start of a text, a list's item or a table's cell.
_START = r"(?:\A|[.!?:;]\s+|Apache-2.0\s+|\n\s*\n\s*|\n\s*- |\A--+ |\|\s+)"
# Refused words -> advice.
_RULES = {
    re.compile(_START + r"(What|Whatever|Who|Whose|How|Nobody)\b"): "name the subject first",
    re.compile(r"\b(as [\w'\s-]{1,40}\sha(?:s|ve)\s(?:it|them))\b"): "say in which form",
    re.compile(r"\b(likewise)\b", re.IGNORECASE): "say what is the same",
    re.compile(r"\b(nobody)\b"): "name the thing that does not",
}
_PYTHON = (".py", ".pyi", ".bzl", ".bazel")
_CPP = (".c", ".cc", ".cpp", ".h", ".hip", ".hpp")
_CPP_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_FENCE = re.compile(r"^```.*?^```|^#.*?$|^    .*?$", re.MULTILINE | re.DOTALL)
Text = tuple[int, str]  # its first line, and itself


def _joined(comments: Iterator[Text]) -> Iterator[Text]:
    """Comments on lines that follow each other, as one text."""
    numbered = ((number - place, number, text) for place, (number, text) in enumerate(comments))
    for _, group in itertools.groupby(numbered, lambda comment: comment[0]):
        lines = list(group)
        yield lines[0][1], "\n".join(text for _, _, text in lines)


def _of_python(text: str) -> Iterator[Text]:
    for node in ast.walk(ast.parse(text)):
        value = node.value if isinstance(node, ast.Expr | ast.keyword) else None
        is_doc = isinstance(node, ast.Expr) or getattr(node, "arg", None) == "doc"
        if is_doc and isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.lineno, value.value
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    yield from _joined(
        (token.start[0], token.string.lstrip("#: "))
        for token in tokens
        if token.type == tokenize.COMMENT
    )


def _of_cpp(text: str) -> Iterator[Text]:
    found = [(text.count("\n", 0, m.start()) + 1, m.group()) for m in _CPP_TEXT.finditer(text)]
    yield from _joined((n, t.lstrip("/!< ")) for n, t in found if t.startswith("//"))
    for number, comment in found:
        if comment.startswith("/*"):
            yield number, re.sub(r"\n\s*\* ?", "\n", comment[2:-2]).lstrip("* ")


def texts(path: str, text: str) -> Iterator[Text]:
    """The comments, docstrings or prose of a file. Headings and examples are no prose."""
    if path.endswith(_PYTHON):
        yield from _of_python(text)
    elif path.endswith(_CPP):
        yield from _of_cpp(text)
    elif path.endswith(".md"):
        yield 1, _FENCE.sub(lambda code: "\n" * code.group().count("\n"), text)
    elif path.endswith(".toml"):
        lines = enumerate(text.splitlines(), 1)
        yield from _joined((n, line.lstrip("# ")) for n, line in lines if line.startswith("#"))


def _keyed(files: Sequence[str]) -> set[str]:
    """Device code of our own: its text is in keys, and a comment's change would compile it anew."""
    ours = [path for path in files if path.startswith("kernels/")]
    folders = {posixpath.dirname(path) for path in ours if path.endswith(".cpp")}
    return {p for p in ours if p.endswith((".h", ".cpp")) and posixpath.dirname(p) in folders}


def findings(root: Path, files: Sequence[str]) -> Iterator[str]:
    """A line for each sentence that does not name its subject."""
    keyed = _keyed(files)
    for path in files:
        if path in keyed or not path.endswith((*_PYTHON, *_CPP, ".md", ".toml")):
            continue
        for first, text in texts(path, (root / path).read_text(encoding="utf-8")):
            for rule, advice in _RULES.items():
                for match in rule.finditer(text):
                    line = first + text.count("\n", 0, match.start(1))
                    yield f"{path}:{line}: {' '.join(match[1].split())!r}: {advice}"
