# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""docs/reference.md: every name that a user can say to this project, each with one plain line.

The names are read from the tree: build settings from BUILD files, environment variables from the
code that reads them, subcommands from the parsers that define them, C functions from the public
headers, Python functions from `__all__`. The lines are those of docs/reference.toml, and for Python
functions the first lines of their docstrings. A name without a line, or a line without a name, is a
finding; so is a page that differs from the tree's.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import tomllib

LINES = "docs/reference.toml"
PAGE = "docs/reference.md"
# The modules of the package that users import, by their paths in it.
PACKAGE = "python/aiter_attn"
HEADERS = ("aiter/attn.h", "aiter/norm.h")

_TESTS = re.compile(r"(^|/)(tests?|testing|prototypes)/|_test\.(py|cc|bzl)$")
_READ = re.compile(r'"((?:AITER_ATTN|BAZELW)_[A-Z0-9_]+)"')
_C_FUNCTION = re.compile(r"^ATTN_API [^;(]*?(\w+)\(", re.MULTILINE)
_PARSER = re.compile(r'add_parser\(\s*"([\w-]+)"')
_COMMAND = re.compile(r"\./bazelw run[^\n`]*? (//[\w/.:-]+)")

Lines = Mapping[str, Mapping[str, str]]


def _targets(path: str, text: str) -> Iterator[tuple[str, str]]:
    """The rule and the label of each target of a BUILD file that is named by a literal."""
    package = path.removesuffix("BUILD.bazel").rstrip("/")
    for call in ast.walk(ast.parse(text)):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        for keyword in call.keywords:
            if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                yield call.func.id, f"//{package}:{keyword.value.value}"


def _first_sentence(doc: str) -> str:
    """The first sentence of a docstring's first paragraph, in one line."""
    paragraph = " ".join(doc.split("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", paragraph)[0]


def _module_file(module: str, files: Container[str]) -> str | None:
    path = "python/" + module.replace(".", "/")
    return next((p for p in (f"{path}/__init__.py", f"{path}.py") if p in files), None)


def _line_of(root: Path, path: str, name: str, files: Container[str]) -> str | None:
    """The first sentence about a module's name; imports of the package are followed."""
    for node in ast.parse((root / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            doc = ast.get_docstring(node)
            if doc:
                return _first_sentence(doc)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("aiter_attn"):
            for alias in node.names:
                source = _module_file(str(node.module), files)
                if (alias.asname or alias.name) == name and source and source != path:
                    return _line_of(root, source, alias.name, files)
    return None


def _exported(root: Path, path: str) -> list[str]:
    for node in ast.parse((root / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def _faces(files: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Modules that users import, with their files: those whose paths have no private part."""
    for path in files:
        if path.startswith(f"{PACKAGE}/") and path.endswith(".py"):
            module = path.removeprefix("python/").removesuffix(".py").removesuffix("/__init__")
            if not any(part.startswith("_") for part in module.split("/")):
                yield module.replace("/", "."), path


def names(root: Path, files: Sequence[str]) -> dict[str, set[str]]:
    """Names of each kind that docs/reference.toml must have a line for."""
    found: dict[str, set[str]] = {
        kind: set() for kind in ("settings", "variables", "commands", "targets", "fuzz", "c")
    }
    for path in files:
        if path.endswith("BUILD.bazel") and not _TESTS.search(path):
            text = (root / path).read_text(encoding="utf-8")
            for rule, label in _targets(path, text):
                if rule.endswith("_flag"):
                    found["settings"].add(f"--{label}")
                if rule == "fuzz_target":
                    found["fuzz"].add(label)
        if path.endswith((".py", ".cc", ".h", ".bzl")) and not _TESTS.search(path):
            found["variables"].update(_READ.findall((root / path).read_text(encoding="utf-8")))
        if path.startswith(PACKAGE) and path.endswith(".py"):
            found["commands"].update(_PARSER.findall((root / path).read_text(encoding="utf-8")))
        if path.endswith(".md") and path != PAGE:
            found["targets"].update(_COMMAND.findall((root / path).read_text(encoding="utf-8")))
        if path in HEADERS:
            found["c"].update(_C_FUNCTION.findall((root / path).read_text(encoding="utf-8")))
    return found


def differences(found: Mapping[str, Iterable[str]], lines: Lines) -> list[str]:
    """A finding for each name without a line, and each line without a name."""
    told = []
    for kind, there in found.items():
        have = set(lines.get(kind, {}))
        told += [f"{LINES}: [{kind}] has no line for {n}" for n in sorted(set(there) - have)]
        told += [f"{LINES}: [{kind}] {n}: there is no such name" for n in sorted(have - set(there))]
    told += [
        f"{LINES}: [{kind}]: there is no such kind" for kind in sorted(set(lines) - set(found))
    ]
    return told


def _table(heads: tuple[str, str], rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield f"| {heads[0]} | {heads[1]} |"
    yield "|---|---|"
    for name, line in rows:
        yield f"| `{name}` | {line.replace('|', chr(92) + '|')} |"
    yield ""


def page(root: Path, files: Sequence[str], lines: Lines) -> str:
    """The text of docs/reference.md."""
    out = [
        "# Reference",
        "",
        "Every name that can be said to this project. `./bazelw run //:lint -- --fix` writes this",
        "page from the tree and from [reference.toml](reference.toml); do not edit it by hand.",
        "",
    ]
    for kind, title, head in (
        ("settings", "Build settings", "flag of `./bazelw build`, `test` and `run`"),
        ("variables", "Environment variables", "variable"),
        ("commands", "Commands of the package", "`python -m aiter_attn`"),
        ("targets", "Programs of the checkout", "`./bazelw run`"),
        ("fuzz", "Fuzz targets", "`./bazelw run`, or a long test"),
        ("c", "C functions", "of `aiter/attn.h` and `aiter/norm.h`"),
    ):
        out += [f"## {title}", ""]
        out += _table((head, "is"), sorted(lines.get(kind, {}).items()))
    out += ["## Python functions", ""]
    for module, path in sorted(_faces(files)):
        told = {n: _line_of(root, path, n, files) for n in _exported(root, path)}
        rows = [(name, line) for name, line in sorted(told.items()) if line]
        if rows:
            out += [f"### `{module}`", ""]
            out += _table(("name", "is"), rows)
    return "\n".join(out).rstrip("\n") + "\n"


def check(root: Path, files: Sequence[str], fix: bool) -> list[str]:
    """Findings, a line each; with fix the page is written first."""
    if LINES not in files:
        return []
    lines = tomllib.loads((root / LINES).read_text(encoding="utf-8"))
    found = differences(names(root, files), lines)
    text = page(root, files, lines)
    target = root / PAGE
    if fix and not found:
        target.write_text(text, encoding="utf-8")
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        found.append(f"{PAGE}: differs from what the tree gives; `./bazelw run //:lint -- --fix`")
    return found
