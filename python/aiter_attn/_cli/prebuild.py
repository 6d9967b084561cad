# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn prebuild`: kernels put into the cache ahead of their first use."""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import fnmatch
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import aiter_attn
from aiter_attn import _C
from aiter_attn._cli import blob_names, explain, qola, store
from aiter_attn._cli import kernels as built_in

__all__ = ["add_to", "compile_seconds", "read_list"]

_INTERRUPTED = 130  # a shell's number for Ctrl-C
_JOBS_VARIABLE = "CK_JIT_JOBS"  # ck-jit's
# Kind -> greatest head size -> seconds of a kernel's compile, ascending.
_COSTS: dict[str, dict[str, float]] = json.loads(
    Path(__file__).with_name("compile_cost.json").read_text(encoding="utf-8")
)
_OWN_SECONDS = 1.5  # a kernel of this project
_HEAD_SIZES = re.compile(r"_d(\d+)(?:x(\d+))?_")


@dataclasses.dataclass(frozen=True)
class _Wanted:
    """A kernel, and where the object is that serves it."""

    arch: str
    name: str
    kind: str
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
            nargs="?",
            metavar="SET|FILE",
            help="the wheel's variant set; or a file, - for stdin: lines ARCH NAME, as "
            "AITER_ATTN_RECORD writes them, names of a blob list of ck-jit's, or arguments of "
            "`explain`",
        )
        action.add_argument("--qola", metavar="FILE", help="a manifest of QoLA's, in their place")
        action.add_argument(
            "--group", action="append", default=[], help="of its modules; may be repeated"
        )
        action.add_argument("--arch", help="for this one alone")
        action.add_argument("--kernels", metavar="GLOB", default="*", help="these names alone")
        action.set_defaults(run=run)
        return action

    action = add("list", _list, "the kernels, and where each is")
    action.add_argument(
        "--format",
        choices=("human", "blob-list"),
        default="human",
        help="blob-list: the names that ck-jit's blobs of the same traits have",
    )
    action = add("build", _build, "fetches or compiles those that are missing")
    action.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help=f"compiles at a time; default: {_JOBS_VARIABLE}, or else the processors",
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


class _Reader:
    """Of the lines of a file."""

    def __init__(self, kernels: Iterable[built_in.Named]) -> None:
        self._known = {(kernel["arch"], kernel["name"]): kernel["key"] for kernel in kernels}
        self._archs = sorted({arch for arch, _ in self._known})
        self._set = f"this wheel's set, {built_in.manifest()['variant_set']}"
        self._instances = built_in.known_instances()
        self._parser = _LineParser(prog="explain")
        explain.add_to(self._parser.add_subparsers())
        # Archs of ck-jit's names that this wheel has no kernels for -> the number of names.
        self.left_out: collections.Counter[str] = collections.Counter()

    def keys(self, line: str) -> list[str]:
        """Of the kernels that a line asks for. Raises ValueError, LookupError, AttnError."""
        words = shlex.split(line)
        if words[0].startswith("-"):
            arguments = self._parser.parse_args(["explain", *words])
            return [kernel["key"] for kernel in explain.explained(arguments).kernels]
        if len(words) == 1:
            return self._of_blob(words[0])
        if len(words) != 2:
            raise ValueError(
                "allowed: ARCH NAME, the name of a blob of ck-jit's, or arguments of `aiter-attn "
                "explain`"
            )
        arch, name = words
        if (arch, name) in self._known:
            return [self._known[arch, name]]
        if arch not in self._archs:
            archs = ", ".join(self._archs) or "no arch"
            raise LookupError(f"{arch}: this wheel has kernels for {archs}")
        raise LookupError(
            f"{name}: {self._set}, has no such kernel for {arch}; `aiter-attn info --kernels` "
            "lists them"
        )

    def _of_blob(self, word: str) -> list[str]:
        stem = blob_names.stem(word)
        name = blob_names.read(stem)
        if name is None:
            raise LookupError(
                f"{stem}: no name of a kernel of Composable Kernel; allowed: those of ck-jit's "
                "blobs, as `aiter-attn prebuild list --format blob-list` writes them"
            )
        archs = blob_names.archs_of(name, self._archs)
        if not archs:
            self.left_out[name.parts["arch"]] += 1
            return []
        keys = [
            instance["code_objects"][arch]["key"]
            for instance in blob_names.serving(name, self._instances)
            for arch in archs
            if arch in instance["code_objects"]
        ]
        if keys:
            return keys
        traits = ", ".join(f"{trait} {value}" for trait, value in name.wanted.items())
        raise LookupError(
            f"{stem}: {self._set}, has no kernel {name.kind} for {', '.join(archs)} with {traits}; "
            "take a wheel of a wider set, such as te"
        )


def _text(file: str) -> str:
    """file: -: stdin. Raises ValueError."""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: is no text: {error}") from None


def read_list(file: str, kernels: Iterable[built_in.Named]) -> list[str]:
    """The keys that the lines of a file ask for, each once, in their order. file: -: stdin.

    Raises ValueError that tells every line that is wrong, with its number.
    """
    text = _text(file)
    reader = _Reader(kernels)
    keys: dict[str, None] = {}
    wrong = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        try:
            keys.update(dict.fromkeys(reader.keys(line)))
        except (aiter_attn.AttnError, LookupError, TypeError, ValueError) as error:
            wrong.append(f"{file}:{number}: {error}")
    if wrong:
        raise ValueError("\n".join(wrong))
    for arch, count in sorted(reader.left_out.items()):
        print(
            f"{file}: {count} names are for {arch}, which this wheel has no kernels for",
            file=sys.stderr,
        )
    return list(keys)


def _chosen(arguments: argparse.Namespace) -> list[_Wanted]:
    """Raises LookupError or ValueError where the arguments choose nothing."""
    kernels = aiter_attn.kernels()
    variant_set = built_in.manifest()["variant_set"]
    if (arguments.what is None) == (arguments.qola is None):
        raise ValueError(f"give one: the variant set, {variant_set}, or a file, or --qola FILE")
    if arguments.group and arguments.qola is None:
        raise ValueError("--group: not without --qola, whose modules it chooses")
    what = arguments.what if arguments.qola is None else arguments.qola
    if arguments.qola is not None:
        archs = sorted({kernel["arch"] for kernel in kernels})
        known = {"variant_set": variant_set, "instances": built_in.known_instances()}
        keys = qola.keys_of(_text(what), what, arguments.group, known, archs)
    elif what == variant_set:
        # Not those that a slim wheel knows beside its set.
        keys = [kernel["key"] for kernel in kernels if kernel["code_object_size"]]
    elif what == "-" or os.path.exists(what):
        keys = read_list(what, kernels)
    else:
        raise LookupError(
            f"{what}: no such file, and the variant set of this wheel is {variant_set}"
        )
    named = {kernel["key"]: kernel for kernel in reversed(kernels)}
    chosen = [
        key
        for key in dict.fromkeys(keys)
        if arguments.arch in (None, named[key]["arch"])
        and fnmatch.fnmatchcase(named[key]["name"], arguments.kernels)
    ]
    if not chosen:
        built_for = ", ".join(sorted({kernel["arch"] for kernel in kernels}))
        raise LookupError(
            f"{what}: no kernel is asked for that fits --arch and --kernels; the archs "
            f"are {built_for}, and `aiter-attn info --kernels` lists the names"
        )
    return [
        _Wanted(named[key]["arch"], named[key]["name"], named[key]["kind"], key, store.find(key))
        for key in chosen
    ]


def _list(arguments: argparse.Namespace) -> int:
    wanted = _chosen(arguments)
    if arguments.format == "blob-list":
        for kernel in wanted:
            blob = blob_names.blob_name(kernel.name, kernel.arch)
            print(blob or f"# {kernel}: ck-jit has no such blob")
        return 0
    for kernel in wanted:
        place = kernel.place
        other = "plain compile" if place.is_plain else "its own key"
        key = f", {other} {kernel.served_by[:16]}" if kernel.served_by != kernel.key else ""
        when = ", to be compiled" if place.is_made else ", to be fetched" * place.is_fetched
        print(f"{kernel}: {place.provider or 'nowhere'}{key}{when}")
    print(_summary(wanted))
    return 0


def _summary(wanted: Sequence[_Wanted]) -> str:
    """The number of kernels from each place."""
    there = sum(kernel.place.is_there for kernel in wanted)
    fetched = collections.Counter(k.place.provider for k in wanted if k.place.is_fetched)
    made = collections.Counter(k.place.provider for k in wanted if k.place.is_made)
    parts = [
        f"{there} are there",
        *(f"{count} to be fetched from {provider}" for provider, count in fetched.items()),
        *(f"{count} to be compiled by {provider}" for provider, count in made.items()),
        f"{sum(kernel.place.provider is None for kernel in wanted)} cannot be had",
    ]
    return f"{len(wanted)} kernels: {', '.join(parts)}"


def _seconds(count: float) -> str:
    return f"{count:.1f} s" if count < 60 else f"{count / 60:.0f} min"


def _jobs(asked: int | None) -> int:
    """Compiles at a time. Raises ValueError."""
    source, number = "--jobs", str(asked)
    if asked is None:
        source, number = _JOBS_VARIABLE, os.environ.get(_JOBS_VARIABLE, "")
    if not number:
        return os.cpu_count() or 1
    if not (number.isascii() and number.isdecimal() and int(number) > 0):
        raise ValueError(f"{source} {number}: allowed: 1 or more")
    return int(number)


def _build(arguments: argparse.Namespace) -> int:
    jobs = _jobs(arguments.jobs)
    wanted = _chosen(arguments)
    print(_summary(wanted), flush=True)
    sources = {kernel.key: "were there" for kernel in wanted if kernel.place.is_there}
    # One after the other: the time of a fetch says nothing about that of a compile.
    wanted, fetched = _fetch(wanted, jobs)
    sources.update({key: f"fetched from {server}" for key, server in fetched.items()})
    for kernel in wanted:
        if kernel.place.provider is None:
            print(f"{kernel}: {'; '.join(kernel.place.others)}", file=sys.stderr)
    compiled = [kernel for kernel in wanted if kernel.place.is_made]
    costs = [compile_seconds(kernel.kind, kernel.name) for kernel in compiled]
    failed = _make(compiled, costs, jobs, _compile)
    sources.update({k.key: f"compiled by {k.place.provider}" for k in compiled if k not in failed})
    counts = collections.Counter(sources.values())
    missing = len(wanted) - len(sources)
    parts = [*(f"{count} {source}" for source, count in counts.items()), f"{missing} missing"]
    print(f"{len(wanted)} kernels: {', '.join(parts)}")
    if missing:
        print(f"{missing} of {len(wanted)} kernels are missing; the same command goes on from here")
        return 1
    print(f"all {len(wanted)} kernels are there; calls find them with the same cache:")
    print(f"  {Path(_C.cache_dir()).parent}")
    print("for other users and machines: name that folder in AITER_ATTN_MACHINE_CACHE, or take it")
    print("along with `aiter-attn cache export`")
    return 0


def compile_seconds(kind: str, name: str) -> float:
    """The processor time that a kernel's compile takes, estimated for an idle machine: kernels of
    one kind take several times as long as those of another."""
    sizes = _HEAD_SIZES.search(name)
    if kind not in _COSTS or not sizes:
        return _OWN_SECONDS
    size = max(int(each) for each in sizes.groups() if each)
    return next(cost for most, cost in _COSTS[kind].items() if size <= int(most))


def _fetch(wanted: Sequence[_Wanted], jobs: int) -> tuple[list[_Wanted], dict[str, str]]:
    """Has kernels fetched from servers. Returns all with their places after that, which for those
    that a server did not give is the next one's; and, by key, the server of each that was had."""
    kernels = list(wanted)
    fetched: dict[str, str] = {}
    # A server may lack the object of a kernel's own key, and have that of its plain compile.
    while missing := [kernel for kernel in kernels if kernel.place.is_fetched]:
        lacking = _make(missing, [1.0] * len(missing), jobs, _C.fetch_code_object)
        fetched.update({k.key: str(k.place.provider) for k in missing if k not in lacking})
        kernels = [
            dataclasses.replace(kernel, place=store.find(kernel.key))
            if kernel.place.is_fetched
            else kernel
            for kernel in kernels
        ]
        if lacking:
            print(f"{len(lacking)} of {len(missing)} could not be fetched; {_summary(kernels)}")
    return kernels, fetched


def _compile(key: str) -> bool:
    _C.code_object(key)
    return True


def _make(
    missing: Sequence[_Wanted], costs: Sequence[float], jobs: int, make: Callable[[str], bool]
) -> set[_Wanted]:
    """Has them fetched or compiled, so many at a time, and tells how long the rest will take by
    their costs, in any unit. make: False: it is not there. Returns those that could not be had."""
    failed = set()
    done = 0
    cost, cost_done = sum(costs), 0.0
    cost_of = dict(zip(missing, costs, strict=True))
    start = time.monotonic()
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    making = {pool.submit(make, kernel.served_by): kernel for kernel in missing}
    try:
        for future in concurrent.futures.as_completed(making):
            done += 1
            cost_done += cost_of[making[future]]
            spent = time.monotonic() - start
            left = spent * max(0.0, cost / cost_done - 1)
            error = future.exception()
            is_had = error is None and future.result()
            state = "failed" if error else "done" if is_had else "not there"
            print(
                f"{done} of {len(missing)} {state} after {_seconds(spent)}, about "
                f"{_seconds(left)} left: {making[future]}",
                flush=True,
            )
            if not is_had:
                failed.add(making[future])
            if error:
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
        what = [arguments.what] if arguments.qola is None else ["--qola", arguments.qola]
        groups = [word for group in arguments.group for word in ("--group", group)]
        print(f"next: aiter-attn prebuild build {shlex.join([*what, *groups])}")
    return 1 if wrong else 0


def _missing(wanted: Iterable[_Wanted]) -> Iterator[tuple[_Wanted, str]]:
    """Kernels that are not there, or not right, and why. Nothing is made."""
    for kernel in wanted:
        if not kernel.place.is_there:
            yield kernel, "; ".join(kernel.place.others) or "is not made yet"
            continue
        try:
            _C.code_object(kernel.served_by)
        except aiter_attn.AttnError as error:
            yield kernel, str(error)
