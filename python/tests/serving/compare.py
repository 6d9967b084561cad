# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The interfaces of this folder against the wheels that they were read in:

    pip download --no-deps vllm sglang
    ./bazelw run --config=cache //python/tests/serving:compare -- $PWD/vllm-*.whl $PWD/sglang-*.whl

Nothing of a wheel is executed. Every class, function, argument, default and field of an interface
must be in the wheel's file of the same path, or be imported there. Arguments that the wheel has
beyond those must have defaults, but for those of constructors: objects that a backend is given are
made by tests alone.
"""

from __future__ import annotations

import ast
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

INTERFACES = Path(__file__).parent / "interfaces"

# Of a function its arguments with their defaults; of a field or value its default.
Definition = dict[str, str | None] | str | None


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str | None]:
    given = function.args
    places = given.posonlyargs + given.args
    defaults = [None] * (len(places) - len(given.defaults)) + list(given.defaults)
    pairs = [*zip(places, defaults, strict=True)]
    pairs += zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return {argument.arg: ast.unparse(value) if value else None for argument, value in pairs}


def definitions(source: str) -> dict[str, Definition]:
    """By name, that of a class's part behind the class's: "Backend.get_name"."""
    found: dict[str, Definition] = {}

    def read(body: Sequence[ast.stmt], before: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                found[before + node.name] = None
                read(node.body, f"{before}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[before + node.name] = _arguments(node)
            elif isinstance(node, ast.AnnAssign):
                value = ast.unparse(node.value) if node.value else None
                found[before + ast.unparse(node.target)] = value
            elif isinstance(node, ast.Assign):
                found[before + ast.unparse(node.targets[0])] = ast.unparse(node.value)

    read(ast.parse(source).body, "")
    return found


def _imported(source: str) -> set[str]:
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    return {name.asname or name.name for node in nodes for name in node.names}


def differences(ours: str, theirs: str) -> Iterator[str]:
    """A line for each part of an interface that a source has not so."""
    real, elsewhere = definitions(theirs), _imported(theirs)
    for name, mine in definitions(ours).items():
        if name not in real:
            if name not in elsewhere:
                yield f"{name}: not there"
            continue
        other = real[name]
        if not (isinstance(mine, dict) and isinstance(other, dict)):
            if mine != other:
                yield f"{name}: {mine} here, {other} there"
            continue
        if [a for a in other if a in mine] != list(mine):
            yield f"{name}: arguments {', '.join(mine)} here, {', '.join(other)} there"
        for argument in mine.keys() & other.keys():
            if mine[argument] != other[argument]:
                yield f"{name}: {argument}={mine[argument]} here, {other[argument]} there"
        more = [a for a, default in other.items() if a not in mine and default is None]
        if more and not name.endswith("__init__"):
            yield f"{name}: needs {', '.join(more)}, too"


def main(argv: Sequence[str]) -> int:
    if not argv:
        print("name the wheels: vllm-*.whl, sglang-*.whl", file=sys.stderr)
        return 2
    status = 0
    for path in map(Path, argv):
        package = path.name.split("-")[0]
        files = sorted((INTERFACES / package).rglob("*.py"))
        if not files:
            print(f"{path.name}: no interface of {package} is here", file=sys.stderr)
            return 2
        with zipfile.ZipFile(path) as wheel:
            present = set(wheel.namelist())
            for file in files:
                name = str(file.relative_to(INTERFACES))
                there = wheel.read(name).decode() if name in present else ""
                for line in differences(file.read_text(encoding="utf-8"), there):
                    print(f"{path.name}: {name}: {line}")
                    status = 1
        print(f"{path.name}: {len(files)} files compared")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
