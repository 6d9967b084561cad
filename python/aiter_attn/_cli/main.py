# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn`, or `python -m aiter_attn`: whether it works here, and its kernels for a call."""

from __future__ import annotations

import argparse
import functools
import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from aiter_attn import _C
from aiter_attn._cli import bench, cache, explain, prebuild, selftest, validate
from aiter_attn._cli.doctor import doctor
from aiter_attn._cli.info import info
from aiter_attn._cli.kernels import extract
from aiter_attn._core.errors import AttnError

__all__ = ["main", "program"]


def _run_selftest(arguments: argparse.Namespace) -> int:
    passed = True
    collected: list[dict[str, Any]] = []
    asked = {"numpy": True, "jax": arguments.jax, "torch": arguments.torch}
    for framework in (name for name, is_asked in asked.items() if is_asked):
        try:
            rows = selftest.run(framework=framework)
        except ImportError as error:
            needed = f"{framework} ml_dtypes" if framework == "numpy" else framework
            print(f"selftest: {error}: pip install {needed}", file=sys.stderr)
            return 1
        if arguments.json:
            told = [_row_as_data(framework, row) for row in rows]
            passed &= all(row["passed"] is not False for row in told)
            collected += told
        else:
            passed &= selftest.report(rows, functools.partial(print, flush=True), framework)
    if arguments.json:
        print(json.dumps({"passed": passed, "rows": collected}, indent=2))
    return 0 if passed else 1


def _row_as_data(framework: str, row: selftest.Row) -> dict[str, Any]:
    return {
        "framework": framework,
        "case": row.case.name,
        "dtype": row.case.dtype,
        "errors": list(row.errors),
        "skipped": row.skipped,
        "passed": None if row.skipped else row.passed,
    }


def _file_name(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError(
            "'' names no file; allowed: a file's name, or - for stdout"
        )
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="aiter-attn", description=__doc__)
    parser.add_argument("--version", action="version", version=f"aiter-attn {_C.version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")

    told = commands.add_parser("info", help="whether it works here; versions, drivers, kernels")
    told.add_argument("--json", action="store_true", help="the same as JSON, with all kernels")
    told.add_argument(
        "--kernels",
        nargs="?",
        const="*",
        metavar="GLOB",
        help="also the kernels, or those whose name, key, arch or kind fits, such as 'fwd*'",
    )
    told.set_defaults(run=info)

    judged = commands.add_parser(
        "doctor", help="what is wrong on this machine, and the next step; exit status 1 if anything"
    )
    judged.add_argument("--json", action="store_true", help="the findings as JSON")
    judged.set_defaults(run=doctor)

    tested = commands.add_parser(
        "selftest", help="forward and backward on the CPU against float64 (needs numpy)"
    )
    tested.add_argument("--jax", action="store_true", help="also aiter_attn.jax, in programs")
    tested.add_argument("--torch", action="store_true", help="also aiter_attn.torch")
    tested.add_argument("--json", action="store_true", help="the rows as JSON")
    tested.set_defaults(run=_run_selftest)

    extracted = commands.add_parser("extract", help="write a kernel's code object (an ELF file)")
    extracted.add_argument("key", metavar="KEY", help="key, its first 8 digits or more, or name")
    extracted.add_argument("--arch", help="of an instance name that is built for several")
    extracted.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=_file_name,
        help="default: NAME.ARCH.hsaco; -: stdout",
    )
    extracted.add_argument("--json", action="store_true", help="tell the written file as JSON")
    extracted.set_defaults(run=extract)

    validate.add_to(commands)
    bench.add_to(commands)
    explain.add_to(commands)
    cache.add_to(commands)
    prebuild.add_to(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status: 0, 1 where something failed, 2 for wrong arguments (argparse exits)."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        return 0
    if sys.stdout is None:
        return _fail(arguments, "standard output is closed; redirect it, at least to /dev/null")
    try:
        status: int = arguments.run(arguments)
    except (AttnError, LookupError, TypeError, ValueError) as error:
        return _fail(arguments, error)
    except OSError as error:
        _discard_output()
        return _fail(arguments, error)
    try:
        sys.stdout.flush()
    except OSError as error:
        _discard_output()
        return _fail(arguments, f"standard output: {error}")
    return status


def _fail(arguments: argparse.Namespace, why: object) -> int:
    if sys.stderr is not None:
        print(f"{arguments.command}: {why}", file=sys.stderr)
    return 1


def _discard_output() -> None:
    """Discards output that standard output could not take: Python does not try it again at its
    exit."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def program() -> NoReturn:
    """`aiter-attn`, and `python -m aiter_attn`."""
    # `| head` ends this quietly, as it ends other commands.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if hasattr(sys.stdout, "reconfigure"):
        # A file's name may be bytes that no encoding has.
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main())
