# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn prebuild`: kernels put into the cache ahead of their first use."""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import fnmatch
import os
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import aiter_attn
from aiter_attn import _C
from aiter_attn._cli import explain, store
from aiter_attn._cli import kernels as built_in

__all__ = ["add_to", "read_list"]

_INTERRUPTED = 130  # a shell's number for Ctrl-C


@dataclasses.dataclass(frozen=True)
class _Wanted:
    """A kernel, and where the object is that serves it."""

    arch: str
    name: str
    key: str
    place: store.Found

    @property
    def served_by(self) -> str:
        """The key of the object that serves it."""
        return self.place.key or self.key

    def __str__(self) -> str:
        return f"{self.arch} {self.name}"


def add_to(commands: Any) -> None:
    """Adds the command and its own to argparse's sub-commands."""
    prebuild = commands.add_parser("prebuild", help="kernels into the cache, ahead of their use")
    actions = prebuild.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, run: Any, told: str) -> argparse.ArgumentParser:
        action: argparse.ArgumentParser = actions.add_parser(name, help=told)
        action.add_argument(
            "what",
            metavar="SET|FILE",
            help="the wheel's variant set; or a file: lines ARCH NAME, as AITER_ATTN_RECORD writes "
            "them, or arguments of `explain`",
        )
        action.add_argument("--arch", help="of a set: for this one alone")
        action.add_argument("--kernels", metavar="GLOB", default="*", help="of a set: these names")
        action.set_defaults(run=run)
        return action

    add("list", _list, "the kernels, and where each is")
    action = add("build", _build, "fetches or compiles those that are missing")
    action.add_argument(
        "--jobs", type=int, metavar="N", default=os.cpu_count() or 1, help="compiles at a time"
    )
    add("verify", _verify, "reads all; exit status 1 where one is missing or damaged")


class _LineParser(argparse.ArgumentParser):
    """Of the arguments in a line of a file: it raises ValueError, and ends no process."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)

    def print_help(self, file: object = None) -> None:
        pass

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise ValueError(message or "asks for help")


def _keys_of(line: str, known: dict[tuple[str, str], str], parser: _LineParser) -> list[str]:
    """The keys of the kernels that a line asks for. Raises ValueError, LookupError, AttnError."""
    words = shlex.split(line)
    if words[0].startswith("-"):
        arguments = parser.parse_args(["explain", *words])
        return [kernel["key"] for kernel in explain.explained(arguments).kernels]
    if len(words) != 2:
        raise ValueError("allowed: ARCH NAME, or arguments of `aiter-attn explain`")
    arch, name = words
    if (arch, name) in known:
        return [known[arch, name]]
    archs = sorted({arch for arch, _ in known})
    if arch not in archs:
        raise LookupError(f"{arch}: this wheel has kernels for {', '.join(archs) or 'no arch'}")
    raise LookupError(
        f"{name}: this wheel's set, {built_in.manifest()['variant_set']}, has no such kernel for "
        f"{arch}; `aiter-attn info --kernels` lists them"
    )


def read_list(path: Path, kernels: Iterable[built_in.Named]) -> list[str]:
    """The keys that a file's lines ask for, each once, in their order.

    Raises ValueError that tells every line that is wrong, with its number.
    """
    known = {(kernel["arch"], kernel["name"]): kernel["key"] for kernel in kernels}
    parser = _LineParser(prog="explain")
    explain.add_to(parser.add_subparsers())
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is no text: {error}") from None
    keys: dict[str, None] = {}
    wrong = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        try:
            keys.update(dict.fromkeys(_keys_of(line, known, parser)))
        except (aiter_attn.AttnError, LookupError, TypeError, ValueError) as error:
            wrong.append(f"{path}:{number}: {error}")
    if wrong:
        raise ValueError("\n".join(wrong))
    return list(keys)


def _chosen(arguments: argparse.Namespace) -> list[_Wanted]:
    """Raises LookupError or ValueError where the arguments choose nothing."""
    kernels = aiter_attn.kernels()
    variant_set = built_in.manifest()["variant_set"]
    if arguments.what == variant_set:
        keys = [
            kernel["key"]
            for kernel in kernels
            if arguments.arch in (None, kernel["arch"])
            and fnmatch.fnmatchcase(kernel["name"], arguments.kernels)
        ]
        if not keys:
            archs = ", ".join(sorted({kernel["arch"] for kernel in kernels}))
            raise LookupError(
                f"no kernel of {variant_set} fits --arch and --kernels; the archs are {archs}, and "
                "`aiter-attn info --kernels` lists the names"
            )
    elif os.path.exists(arguments.what):
        if arguments.arch is not None or arguments.kernels != "*":
            raise ValueError("--arch, --kernels: allowed with a set; a file's lines name kernels")
        keys = read_list(Path(arguments.what), kernels)
    else:
        raise LookupError(
            f"{arguments.what}: no such file, and the variant set of this wheel is {variant_set}"
        )
    named = {kernel["key"]: kernel for kernel in reversed(kernels)}
    return [
        _Wanted(named[key]["arch"], named[key]["name"], key, store.find(key))
        for key in dict.fromkeys(keys)
    ]


def _list(arguments: argparse.Namespace) -> int:
    wanted = _chosen(arguments)
    for kernel in wanted:
        place = kernel.place
        plain = f", plain compile {kernel.served_by[:16]}" if kernel.served_by != kernel.key else ""
        when = ", to be made" if place.is_made else ""
        print(f"{kernel}: {place.provider or 'nowhere'}{plain}{when}")
    print(_summary(wanted))
    return 0


def _summary(wanted: Sequence[_Wanted]) -> str:
    made = sum(kernel.place.is_made for kernel in wanted)
    nowhere = sum(kernel.place.provider is None for kernel in wanted)
    there = len(wanted) - made - nowhere
    return f"{len(wanted)} kernels: {there} are there, {made} to be made, {nowhere} cannot be had"


def _seconds(count: float) -> str:
    return f"{count:.1f} s" if count < 60 else f"{count / 60:.0f} min"


def _build(arguments: argparse.Namespace) -> int:
    if arguments.jobs < 1:
        raise ValueError(f"--jobs {arguments.jobs}: allowed: 1 or more")
    wanted = _chosen(arguments)
    print(_summary(wanted), flush=True)
    failed = 0
    for kernel in wanted:
        if kernel.place.provider is None:
            failed += 1
            print(f"{kernel}: {'; '.join(kernel.place.others)}", file=sys.stderr)
    missing = [kernel for kernel in wanted if kernel.place.is_made]
    failed += _make(missing, arguments.jobs)
    if failed:
        print(f"{failed} of {len(wanted)} kernels are missing; the same command goes on from here")
        return 1
    print(f"all {len(wanted)} kernels are there; calls find them with the same cache:")
    print(f"  {Path(_C.cache_dir()).parent}")
    print("for other users and machines: name that folder in AITER_ATTN_MACHINE_CACHE, or take it")
    print("along with `aiter-attn cache export`")
    return 0


def _make(missing: Sequence[_Wanted], jobs: int) -> int:
    """Has them made, so many at a time. Returns the number of those that could not be."""
    failed = done = 0
    start = time.monotonic()
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    making = {pool.submit(_C.code_object, kernel.served_by): kernel for kernel in missing}
    try:
        for future in concurrent.futures.as_completed(making):
            done += 1
            spent = time.monotonic() - start
            left = spent / done * (len(missing) - done)
            error = future.exception()
            state = "failed" if error else "done"
            print(
                f"{done} of {len(missing)} {state} after {_seconds(spent)}, about "
                f"{_seconds(left)} left: {making[future]}",
                flush=True,
            )
            if error:
                failed += 1
                print(f"{making[future]}: {error}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr, flush=True)
        # Compiles end with their process, and what they have not finished is not there.
        os._exit(_INTERRUPTED)
    return failed


def _verify(arguments: argparse.Namespace) -> int:
    wrong = 0
    wanted = _chosen(arguments)
    for kernel, why in _missing(wanted):
        wrong += 1
        print(f"{kernel}: {why}")
    print(f"{len(wanted) - wrong} of {len(wanted)} kernels are there, and are right")
    if wrong:
        print(f"next: aiter-attn prebuild build {shlex.quote(arguments.what)}")
    return 1 if wrong else 0


def _missing(wanted: Iterable[_Wanted]) -> Iterator[tuple[_Wanted, str]]:
    """Kernels that are not there, or not right, and why. Nothing is made."""
    for kernel in wanted:
        if kernel.place.provider is None or kernel.place.is_made:
            yield kernel, "; ".join(kernel.place.others) or "is not made yet"
            continue
        try:
            _C.code_object(kernel.served_by)
        except aiter_attn.AttnError as error:
            yield kernel, str(error)
