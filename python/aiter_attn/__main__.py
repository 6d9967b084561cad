# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn`, or `python -m aiter_attn`: whether it works here, and what it has for a call."""

from __future__ import annotations

import argparse
import fnmatch
import functools
import json
import math
import os
import platform
import re
import signal
import sys
import textwrap
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn, TypedDict

from aiter_attn import _C, AttnError, _files, _selection, _selftest

_WIDTH = 100
_DTYPES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8-e4m3fn": "float8_e4m3fn",
    "fp8-e4m3fnuz": "float8_e4m3fnuz",
}


class _Named(TypedDict):
    """A kernel that is built in, of attention's or of the norms'."""

    name: str
    arch: str
    key: str
    kind: str
    code_object_size: int


def manifest() -> dict[str, Any]:
    """What the package was built from."""
    text = Path(__file__).with_name("manifest.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def drivers() -> list[dict[str, Any]]:
    """Name, whether usable here, and its description or the reason."""
    found = []
    kinds = (("CPU", _C.DEVICE_CPU), ("CUDA", _C.DEVICE_CUDA), ("ROCm", _C.DEVICE_ROCM))
    for name, kind in kinds:
        try:
            found.append({"name": name, "usable": True, "text": _C.driver_info(kind)})
        except AttnError as error:
            found.append({"name": name, "usable": False, "text": str(error)})
    return found


def frameworks() -> dict[str, str | None]:
    """The installed version of each; None: not installed."""
    found: dict[str, str | None] = {}
    for name in ("torch", "jax"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def gpu_verdict(driver: dict[str, Any], archs: Sequence[str]) -> tuple[bool, str]:
    """Whether attention works on an AMD GPU here, and why, in a line: of a driver of drivers()."""
    if not driver["usable"]:
        return False, driver["text"].partition(" (")[0]
    found = sorted(set(re.findall(r"gfx[0-9a-f]+", driver["text"])))
    served = [arch for arch in found if arch in archs]
    if served:
        return True, f"kernels for {', '.join(served)} are built in"
    return False, f"{', '.join(found) or 'no GPU'}; built for {', '.join(archs) or 'no arch'}"


def facts() -> dict[str, Any]:
    """What `info` tells, as data."""
    kernels = _selection.kernels()
    built = manifest()
    archs = sorted({kernel["arch"] for kernel in kernels})
    found = drivers()
    works, why = gpu_verdict(next(d for d in found if d["name"] == "ROCm"), archs)
    return {
        "version": _C.version(),
        "abi_version": _C.abi_version(),
        "python": platform.python_version(),
        "frameworks": frameworks(),
        "gpu": {"works": works, "text": why},
        "variant_set": built["variant_set"],
        "toolchain": built["toolchain"],
        "not_locked": built["not_locked"],
        "archs": archs,
        "norms": built["norms"],
        "drivers": found,
        "kernels": kernels,
    }


def _wrap_name(name: str, width: int) -> Iterator[str]:
    """A CK instance name (over 100 letters, words joined by _) in lines of at most width."""
    line = ""
    for i, word in enumerate(name.split("_")):
        word = word if i == 0 else "_" + word
        if line and len(line) + len(word) > width:
            yield line
            line = ""
        line += word
    yield line


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"


def _info_lines(pattern: str | None = None) -> Iterator[str]:
    """Lines for people; kernels whose name, kind, arch or key fits the pattern, one by one."""
    told = facts()
    kernels: list[_C.Kernel] = told["kernels"]
    others = ", ".join(
        f"{name} {version or 'not installed'}" for name, version in told["frameworks"].items()
    )
    yield (
        f"aiter-attn {told['version']} (C ABI {told['abi_version']}), Python {told['python']}, "
        f"{others}"
    )
    state = "works here" if told["gpu"]["works"] else "does not work here"
    yield f"AMD GPU    {state}: {told['gpu']['text']}"[:_WIDTH]
    yield "CPU        works here: the reference"
    yield f"variants   {told['variant_set']}"
    yield f"archs      {', '.join(told['archs']) or 'none: built without kernels'}"
    yield f"toolchain  {told['toolchain']}"
    for package in told["not_locked"]:
        yield f"not locked {package}: built with it in the place of a package that was gone"
    for driver in told["drivers"]:
        state = "ready" if driver["usable"] else "absent"
        yield from textwrap.wrap(
            f"driver     {driver['name']} {state}: {driver['text']}",
            _WIDTH,
            subsequent_indent=" " * 11,
        )
    embedded = sum(kernel["embedded_size"] for kernel in kernels)
    unpacked = sum(kernel["code_object_size"] for kernel in kernels)
    yield (
        f"kernels    {len(kernels)} code objects, {_size(embedded)} embedded, "
        f"{_size(unpacked)} unpacked"
    )
    norms = [(arch, norm) for norm in told["norms"] for arch in norm["code_objects"]]
    archs = ", ".join(sorted({arch for arch, _ in norms}))
    yield f"norms      {len(norms)} code objects built in{archs and f': {archs}'}"
    if pattern is None:
        return
    known: list[_Named] = [*kernels, *norm_kernels()]
    shown = [
        kernel
        for kernel in known
        if any(
            fnmatch.fnmatch(text, pattern)
            for text in (kernel["name"], kernel["kind"], kernel["arch"], kernel["key"])
        )
    ]
    if not shown:
        kinds = ", ".join(sorted({kernel["kind"] for kernel in known}))
        raise LookupError(
            f"--kernels {pattern}: none; allowed: a pattern of a name, key, arch or kind ({kinds})"
        )
    for kind in sorted({kernel["kind"] for kernel in shown}):
        yield ""
        yield kind
        for kernel in shown:
            if kernel["kind"] != kind:
                continue
            size = _size(kernel["code_object_size"])
            start = f"  {kernel['arch']:<7} {kernel['key'][:16]} {size:>10}  "
            first, *rest = _wrap_name(kernel["name"], _WIDTH - len(start))
            yield start + first
            for line in rest:
                yield " " * len(start) + line


def _info(arguments: argparse.Namespace) -> int:
    if arguments.json:
        print(json.dumps(facts(), indent=2))
    else:
        for line in _info_lines(arguments.kernels):
            print(line)
    return 0


def _run_selftest(arguments: argparse.Namespace) -> int:
    passed = True
    collected: list[dict[str, Any]] = []
    asked = {"numpy": True, "jax": arguments.jax, "torch": arguments.torch}
    for framework in (name for name, is_asked in asked.items() if is_asked):
        try:
            rows = _selftest.run(framework=framework)
        except ImportError as error:
            needed = f"{framework} ml_dtypes" if framework == "numpy" else framework
            print(f"selftest: {error}: pip install {needed}", file=sys.stderr)
            return 1
        if arguments.json:
            told = [_row_as_data(framework, row) for row in rows]
            passed &= all(row["passed"] is not False for row in told)
            collected += told
        else:
            passed &= _selftest.report(rows, functools.partial(print, flush=True), framework)
    if arguments.json:
        print(json.dumps({"passed": passed, "rows": collected}, indent=2))
    return 0 if passed else 1


def _row_as_data(framework: str, row: _selftest.Row) -> dict[str, Any]:
    return {
        "framework": framework,
        "case": row.case.name,
        "dtype": row.case.dtype,
        "errors": list(row.errors),
        "skipped": row.skipped,
        "passed": None if row.skipped else row.passed,
    }


def norm_kernels() -> list[_Named]:
    """The norms' kernels that are built in."""
    return [
        {
            "name": norm["name"],
            "arch": arch,
            "key": known["key"],
            "kind": norm["operation"],
            "code_object_size": known["size"],
        }
        for norm in manifest()["norms"]
        for arch, known in norm["code_objects"].items()
    ]


def find_kernel(wanted: str, arch: str | None) -> _Named:
    """The kernel of a key, of a key's beginning, or of an instance name (and arch).

    Raises LookupError that says what there is.
    """
    kernels: list[_Named] = [*_selection.kernels(), *norm_kernels()]
    found = [k for k in kernels if k["name"] == wanted]
    if not found and len(wanted) >= 8:
        found = [k for k in kernels if k["key"].startswith(wanted.lower())]
    if arch is not None:
        archs = sorted({k["arch"] for k in found or kernels})
        found = [k for k in found if k["arch"] == arch]
        if arch not in archs:
            raise LookupError(f"--arch {arch}: allowed: {', '.join(archs) or 'none is built in'}")
    if not found:
        raise LookupError(
            f"{wanted}: no such key or instance name; `aiter-attn info --kernels` lists the "
            f"{len(kernels)} there are"
        )
    if len({k["key"] for k in found}) > 1:
        choices = ", ".join(f"{k['arch']} {k['key'][:16]}" for k in found)
        raise LookupError(f"{wanted}: several code objects ({choices}); add --arch or more digits")
    return found[0]


def _extract(arguments: argparse.Namespace) -> int:
    kernel = find_kernel(arguments.key, arguments.arch)
    data = _C.code_object(kernel["key"])
    if arguments.output == "-":
        if arguments.json:
            raise ValueError("--json: not beside --output -, which takes standard output")
        sys.stdout.buffer.write(data)
        return 0
    suffix = "hsaco" if kernel["arch"].startswith("gfx") else "cubin"
    output = Path(arguments.output or f"{kernel['name']}.{kernel['arch']}.{suffix}")
    _files.write_whole(output, data)
    if arguments.json:
        told = {"name": kernel["name"], "arch": kernel["arch"], "key": kernel["key"]}
        print(json.dumps({"file": str(output), "size": len(data), **told}, indent=2))
    else:
        print(f"{output}: {len(data)} bytes, {kernel['arch']}, key {kernel['key']}")
    return 0


def _explain(arguments: argparse.Namespace) -> int:
    _refuse_contradictions(arguments)
    found = _explain_cache(arguments) if arguments.cache else _explain_attention(arguments)
    if arguments.json:
        print(json.dumps(found._asdict(), indent=2))
    else:
        print(found.text, end="")
    return 0


# What each of these flags of `explain` needs; another must not be there.
_NEEDS = {
    "bias_grad": ("backward", "bias"),
    "min_seqlen_q": ("varlen",),
    "page_size": ("cache",),
    "splits": ("cache",),
    "append": ("cache",),
    "rotary": ("cache", "append"),
    "lse": ("cache",),
}
_EXCLUDES = {
    "alibi": ("bias",),
    "cache": ("backward", "dropout", "bias", "deterministic", "min_seqlen_q"),
    "append": ("varlen",),
}


def _refuse_contradictions(arguments: argparse.Namespace) -> None:
    def is_given(flag: str) -> bool:
        return bool(getattr(arguments, flag))

    def shown(flag: str) -> str:
        return "--" + flag.replace("_", "-")

    for flag, needed in _NEEDS.items():
        for other in needed:
            if is_given(flag) and not is_given(other):
                raise ValueError(f"{shown(flag)}: allowed with {shown(other)} only")
    for flag, excluded in _EXCLUDES.items():
        for other in excluded:
            if is_given(flag) and is_given(other):
                raise ValueError(f"{shown(flag)}: not beside {shown(other)}; drop one of them")


def _explain_attention(a: argparse.Namespace) -> _selection.Explanation:
    seqlen_k, heads_k, head_size_v = _keys(a)
    rows_q: tuple[int, ...] = (a.batch, a.seqlen_q)
    rows_k: tuple[int, ...] = (a.batch, seqlen_k)
    if a.varlen:
        rows_q, rows_k = (math.prod(rows_q),), (math.prod(rows_k),)
    return _selection.explain(
        (*rows_q, a.heads_q, a.head_size),
        (*rows_k, heads_k, a.head_size),
        (*rows_k, heads_k, head_size_v),
        backward=a.backward,
        causal=a.causal,
        window_size=tuple(a.window),
        sequences=(a.batch, a.seqlen_q, seqlen_k) if a.varlen else None,
        dropout_p=a.dropout,
        softcap=a.softcap,
        bias="alibi" if a.alibi else "elementwise" if a.bias else None,
        bias_grad=a.bias_grad,
        deterministic=a.deterministic,
        min_seqlen_q=a.min_seqlen_q,
        dtype=_DTYPES[a.dtype],
        arch=a.arch,
    )


def _explain_cache(a: argparse.Namespace) -> _selection.Explanation:
    seqlen_k, heads_k, head_size_v = _keys(a)
    rows: tuple[int, ...] = (a.batch, seqlen_k)  # in place
    table = None
    if a.page_size < 0:
        raise ValueError(f"--page-size: {a.page_size}; allowed: 1 or more, or 0: in place")
    if a.page_size:
        table = (a.batch, -(-seqlen_k // a.page_size))
        rows = (math.prod(table), a.page_size)
    elif a.varlen:
        rows = (a.batch * seqlen_k,)  # listed one by one
    return _selection.explain_kvcache(
        (*((a.batch * a.seqlen_q,) if a.varlen else (a.batch, a.seqlen_q)), a.heads_q, a.head_size),
        (*rows, heads_k, a.head_size),
        (*rows, heads_k, head_size_v),
        block_table=table,
        sequences=(a.batch, a.seqlen_q, seqlen_k) if a.varlen else None,
        causal=a.causal,
        window_size=tuple(a.window),
        softcap=a.softcap,
        alibi=a.alibi,
        seqlen_new=a.append,
        rotary=a.rotary,
        num_splits=a.splits,
        return_lse=a.lse,
        dtype=_DTYPES[a.dtype],
        arch=a.arch,
    )


def _keys(a: argparse.Namespace) -> tuple[int, int, int]:
    """Length, heads and head size of v, which are as of q where they are not given."""
    return (
        a.seqlen_q if a.seqlen_k is None else a.seqlen_k,
        a.heads_q if a.heads_k is None else a.heads_k,
        a.head_size if a.head_size_v is None else a.head_size_v,
    )


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

    info = commands.add_parser("info", help="whether it works here; versions, drivers, kernels")
    info.add_argument("--json", action="store_true", help="the same as JSON, with all kernels")
    info.add_argument(
        "--kernels",
        nargs="?",
        const="*",
        metavar="GLOB",
        help="also the kernels, or those whose name, key, arch or kind fits, such as 'fwd*'",
    )
    info.set_defaults(run=_info)

    selftest = commands.add_parser(
        "selftest", help="forward and backward on the CPU against float64 (needs numpy)"
    )
    selftest.add_argument("--jax", action="store_true", help="also aiter_attn.jax, in programs")
    selftest.add_argument("--torch", action="store_true", help="also aiter_attn.torch")
    selftest.add_argument("--json", action="store_true", help="the rows as JSON")
    selftest.set_defaults(run=_run_selftest)

    extract = commands.add_parser("extract", help="write a kernel's code object (an AMDGPU ELF)")
    extract.add_argument("key", metavar="KEY", help="key, its first 8 digits or more, or name")
    extract.add_argument("--arch", help="of an instance name that is built for several")
    extract.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=_file_name,
        help="default: NAME.ARCH.hsaco; -: stdout",
    )
    extract.add_argument("--json", action="store_true", help="what was written, as JSON")
    extract.set_defaults(run=_extract)

    explain = commands.add_parser("explain", help="which kernels would serve a call, and why")
    explain.add_argument("--arch", help="such as gfx942, here or not; default: the first GPU's")
    explain.add_argument("--dtype", choices=_DTYPES, required=True)
    number = functools.partial(explain.add_argument, type=int, metavar="N")
    number("--batch", default=1, help="default: 1")
    number("--seqlen-q", required=True, help="with --varlen: of each sequence")
    number("--seqlen-k", help="default: as of q")
    number("--heads-q", default=1, help="default: 1")
    number("--heads-k", help="default: as of q")
    number("--head-size", required=True, help="of q and k")
    number("--head-size-v", help="default: as of q and k")
    explain.add_argument("--causal", action="store_true")
    explain.add_argument("--window", nargs=2, type=int, default=(-1, -1), metavar=("LEFT", "RIGHT"))
    explain.add_argument("--varlen", action="store_true", help="sequences of different lengths")
    explain.add_argument("--backward", action="store_true")
    explain.add_argument("--dropout", type=float, default=0.0, metavar="P")
    explain.add_argument("--softcap", type=float, default=0.0, metavar="CAP")
    explain.add_argument("--bias", action="store_true", help="an elementwise one")
    explain.add_argument("--bias-grad", action="store_true", help="and its gradient")
    explain.add_argument("--alibi", action="store_true")
    explain.add_argument("--deterministic", action="store_true", help="the backward pass")
    number("--min-seqlen-q", default=0, help="sequences of so many queries or fewer are left out")
    explain.add_argument(
        "--cache",
        action="store_true",
        help="over a key-value cache with room for --seqlen-k keys; with --varlen and without "
        "--page-size, keys listed one by one",
    )
    number("--page-size", default=0, help="of a cache in pages; default: in place")
    number("--splits", default=0, help="of the keys; default: as many as fill the GPU")
    number("--append", default=0, help="new keys of each sequence")
    explain.add_argument("--rotary", choices=("interleaved", "halves"), help="rotates new keys")
    explain.add_argument("--lse", action="store_true", help="the call returns it")
    explain.add_argument("--json", action="store_true", help="text and kernels as JSON")
    explain.set_defaults(run=_explain)
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
    """What standard output could not take is not tried again when Python exits."""
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


if __name__ == "__main__":
    program()
