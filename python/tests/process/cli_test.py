# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`python -m aiter_attn` and the modules that an import brings along, each in a process of its
own."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiter_attn
import pytest
from aiter_attn import _C
from aiter_attn._cli import info, kernels
from aiter_attn._cli.main import main

KERNELS = aiter_attn.kernels()
SHAPES = ((1, 40, 1, 64),) * 3
CALL = ("--dtype", "fp16", "--head-size", "64", "--seqlen-q", "40", "--causal")


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **environment},
    )


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "aiter_attn", *arguments, **environment)


def test_info_is_for_people() -> None:
    done = run("info")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert re.fullmatch(
        rf"aiter-attn {re.escape(aiter_attn.__version__)} \(C ABI {_C.abi_version()}\), "
        r"Python [\d.]+, torch (\S+|not installed), jax (\S+|not installed)",
        lines[0],
    )
    assert lines[1].startswith("AMD GPU    does not work here: ")
    assert lines[2] == "CPU        works here: the reference"
    assert max(len(line) for line in lines) <= 100
    assert any(line.startswith("driver     CPU ready: ") for line in lines)
    assert any(line.startswith("archs      ") for line in lines)
    assert any(line.startswith(f"kernels    {len(KERNELS)} code objects, ") for line in lines)
    assert not any(kernel["key"][:16] in done.stdout for kernel in KERNELS)


def test_info_lists_kernels_that_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    def keys(*arguments: str) -> set[str]:
        assert main(["info", "--kernels", *arguments]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(len(line) for line in lines) <= 100
        return set(re.findall(r"^  gfx\w+ +([0-9a-f]{16}) ", "\n".join(lines), re.MULTILINE))

    assert keys() == {kernel["key"][:16] for kernel in KERNELS}
    assert main(["info", "--kernels"]) == 0
    headings = set(re.findall(r"^(\w+), of (\w+)$", capsys.readouterr().out, re.MULTILINE))
    assert headings == {(kernel["kind"], kernel["provider"]) for kernel in KERNELS}
    first = KERNELS[0]
    same = {kernel["key"][:16] for kernel in KERNELS if kernel["kind"] == first["kind"]}
    assert keys(first["kind"]) == same != keys()
    assert keys(first["key"][:20] + "*") == {first["key"][:16]}
    assert main(["info", "--kernels", "nothing"]) == 1
    assert "info: --kernels nothing: none; allowed: a pattern of" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("driver", "archs", "works", "why"),
    [
        ((False, "no HIP runtime on this machine (x.so); install"), ["gfx942"], False, "no HIP ru"),
        ((True, "HIP 7, gfx942 (304 CUs)"), ["gfx90a", "gfx942"], True, "kernels for gfx942 are"),
        ((True, "HIP 7, gfx942 (304 CUs)"), ["gfx950"], False, "gfx942; built for gfx950"),
        ((True, "HIP 7, gfx942 (304 CUs)"), [], False, "gfx942; built for no arch"),
    ],
)
def test_whether_a_gpu_works(
    driver: tuple[bool, str], archs: list[str], works: bool, why: str
) -> None:
    told = info.gpu_verdict({"usable": driver[0], "text": driver[1]}, archs)
    assert told[0] is works and told[1].startswith(why)


def test_without_a_command_it_helps() -> None:
    done = run()
    assert done.returncode == 0 and done.stdout.startswith("usage: aiter-attn ")
    assert "selftest" in done.stdout
    assert run("--version").stdout == f"aiter-attn {aiter_attn.__version__}\n"


def test_info_says_why_a_driver_is_absent() -> None:
    done = run("info", AITER_ATTN_HIP_LIBRARY="/nowhere/libamdhip64.so.6")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "driver ROCm absent: " in text
    assert "/nowhere/libamdhip64.so.6" in text


def test_info_says_what_was_not_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    built = kernels.manifest()
    monkeypatch.setattr(kernels, "manifest", lambda: built | {"not_locked": []})
    assert not [line for line in info.info_lines() if "not locked" in line]
    monkeypatch.setattr(kernels, "manifest", lambda: built | {"not_locked": ["clang-22 1:22.1.9"]})
    (line,) = [line for line in info.info_lines() if "not locked" in line]
    assert "clang-22 1:22.1.9" in line
    assert info.facts()["not_locked"] == ["clang-22 1:22.1.9"]


def test_info_says_which_kernels_nothing_has_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    built = kernels.manifest()
    assert built["not_executed"] == []
    assert not [line for line in info.info_lines() if "not executed" in line]
    monkeypatch.setattr(kernels, "manifest", lambda: built | {"not_executed": ["gfx1201"]})
    (line,) = [line for line in info.info_lines() if "not executed" in line]
    assert "gfx1201: built and not executed, docs/emulation.md#gfx12" in line
    assert info.facts()["not_executed"] == ["gfx1201"]


def test_info_says_whose_the_python_headers_were(monkeypatch: pytest.MonkeyPatch) -> None:
    # These tests run on a locked Python.
    assert info.facts()["machine_headers"] is None
    headers = {"version": "3.12.1", "sha256": "5" * 64}
    built = kernels.manifest() | {"not_locked": [], "machine_headers": headers}
    monkeypatch.setattr(kernels, "manifest", lambda: built)
    lines = list(info.info_lines())
    (at,) = [i for i, line in enumerate(lines) if "not locked" in line]
    assert "headers of Python 3.12.1: those of the machine" in lines[at]
    assert "5" * 64 in lines[at + 1]
    assert info.facts()["machine_headers"] == headers


def test_info_says_which_norms_are_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    built = kernels.manifest()
    norm = {"name": "rms", "operation": "rms", "code_objects": {"sm_90": {}, "gfx942": {}}}
    for norms, told in (([], ""), ([norm, norm | {"name": "soft"}], ": gfx942, sm_90")):
        monkeypatch.setattr(kernels, "manifest", lambda norms=norms: built | {"norms": norms})
        (line,) = [line for line in info.info_lines() if line.startswith("norms ")]
        assert line == f"norms      {2 * len(norms)} code objects built in{told}"
        assert info.facts()["norms"] == norms


def test_info_is_for_programs() -> None:
    done = run("info", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["version"] == aiter_attn.__version__
    assert told["python"] == platform.python_version()
    assert set(told["frameworks"]) == {"torch", "jax"}
    assert told["gpu"]["works"] is False and told["gpu"]["text"]
    assert told["variant_set"]
    assert len(told["toolchain"]) == 64
    assert told["kernels"] == [
        {**kernel, "found_in": "the library", "found_key": kernel["key"]} for kernel in KERNELS
    ]
    assert told["providers"][0] == {
        "name": "the library", "kernels": len({k["key"] for k in KERNELS}), "plain": 0,
        "refused": "",
    }  # fmt: skip
    assert told["archs"] == sorted({k["arch"] for k in KERNELS})
    assert [d["name"] for d in told["drivers"]] == ["CPU", "CUDA", "ROCm"]


def test_selftest_passes_and_shows_its_errors() -> None:
    done = run("selftest")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert max(len(line) for line in lines) <= 100
    assert re.fullmatch(r"\d\d passed, 0 failed, 0 skipped \(.*\)", lines[-1])


def test_selftest_is_for_programs() -> None:
    done = run("selftest", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["passed"] is True and len(told["rows"]) > 20
    row = told["rows"][0]
    assert row["framework"] == "numpy" and row["passed"] is True and len(row["errors"]) == 5


def test_selftest_says_once_what_to_install() -> None:
    hide = "import sys; sys.modules['ml_dtypes'] = None; from aiter_attn._cli.main import main; "
    done = python("-c", hide + "sys.exit(main(['selftest']))")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("pip install ml_dtypes") == 1
    assert done.stdout.count("skipped\n") > 1


def test_selftest_without_numpy_says_what_it_needs() -> None:
    hide = "import sys; sys.modules['numpy'] = None; from aiter_attn._cli.main import main; "
    done = python("-c", hide + "sys.exit(main(['selftest']))")
    assert done.returncode == 1
    assert "pip install numpy ml_dtypes" in done.stderr


def test_validate_without_a_gpu_says_what_it_looked_for() -> None:
    missing = "/nowhere/libamdhip64.so.6"
    done = run("validate", AITER_ATTN_HIP_LIBRARY=missing)
    assert done.returncode == 2
    assert done.stderr.startswith("validate: no GPU to run on: ")
    assert missing in done.stderr
    assert "next: aiter-attn doctor says why" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("module", ["numpy", "ml_dtypes"])
def test_validate_says_what_it_needs(module: str) -> None:
    hide = f"import sys; sys.modules['{module}'] = None; from aiter_attn._cli.main import main; "
    done = python("-c", hide + "sys.exit(main(['validate']))")
    assert done.returncode == 2
    assert "next: pip install numpy ml_dtypes" in done.stderr


def test_bench_measures_the_cpu_where_it_is_asked_to() -> None:
    shape = ("--seqlen-q", "24", "--seqlen-k", "40", "--heads", "4", "--heads-k", "2")
    more = ("--head-size", "16", "--dtype", "fp32", "--causal", "--backward", "--runs", "3")
    done = run("bench", "--device", "cpu", *shape, *more, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["arguments"]["heads_k"] == 2 and told["arguments"]["causal"] is True
    ours = [row for row in told["rows"] if row["by"] == "aiter-attn"]
    assert [row["pass"] for row in ours] == ["forward", "backward"]
    # Queries 0 to 23 see 17 to 40 keys.
    operations = 4 * 4 * 16 * sum(range(17, 41))
    for row, count in zip(ours, (operations, operations * 2.5), strict=True):
        assert 0 < row["least"] <= row["median"] and row["runs"] == 3
        assert row["tflops"] == pytest.approx(count / row["median"] / 1e9)
    progress = [f"bench: 3 runs of {of} by aiter-attn" for of in ("forward", "backward")]
    assert [line for line in done.stderr.splitlines() if line.endswith("attn")] == progress
    table = run("bench", "--device", "cpu", *shape, *more).stdout.splitlines()
    assert table[0] == "cpu: the CPU reference"
    assert max(map(len, table)) <= 100
    assert [line.split()[:2] for line in table[2:4]] == [
        ["forward", "aiter-attn"],
        ["backward", "aiter-attn"],
    ]
    assert table[-1] == "next: without --device cpu the same on a GPU"


def test_bench_without_a_gpu_says_what_it_looked_for() -> None:
    done = run("bench", "--seqlen-q", "8", AITER_ATTN_HIP_LIBRARY="/nowhere/libamdhip64.so.6")
    assert done.returncode == 2
    assert done.stderr.startswith("bench: no GPU to run on: ")
    assert "/nowhere/libamdhip64.so.6" in done.stderr


def test_extract_by_key_beginning_and_name(tmp_path: Path) -> None:
    kernel = KERNELS[0]
    by_key, by_beginning, by_name = (tmp_path / name for name in ("key", "beginning", "name"))
    for wanted, path in (
        ((kernel["key"],), by_key),
        ((kernel["key"][:16].upper(),), by_beginning),
        ((kernel["name"], "--arch", kernel["arch"]), by_name),
    ):
        done = run("extract", *wanted, "-o", str(path))
        assert done.returncode == 0, done.stderr
        assert kernel["key"] in done.stdout
    data = by_key.read_bytes()
    assert data[:4] == b"\x7fELF"
    assert len(data) == kernel["code_object_size"]
    digests = {hashlib.sha256(p.read_bytes()).digest() for p in (by_key, by_beginning, by_name)}
    assert len(digests) == 1


def test_results_are_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel, file = KERNELS[0], str(tmp_path / "x")
    assert main(["extract", kernel["key"], "-o", file, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "file": file,
        "size": kernel["code_object_size"],
        **{k: kernel[k] for k in ("name", "arch", "key")},
    }
    arch = str(kernel["arch"])
    assert main(["explain", *CALL, "--arch", arch, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    want = aiter_attn.explain(*SHAPES, dtype="float16", causal=True, arch=arch)
    assert told == {"kernels": want.kernels, "text": want.text}


def test_extract_names_the_file_after_the_kernel(tmp_path: Path) -> None:
    kernel = KERNELS[-1]
    done = subprocess.run(
        [sys.executable, "-m", "aiter_attn", "extract", kernel["key"]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(Path(p).resolve()) for p in sys.path)},
        check=False,
    )
    assert done.returncode == 0
    assert (tmp_path / f"{kernel['name']}.{kernel['arch']}.hsaco").stat().st_size


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("inf",), 2, "invalid choice: 'inf' (choose from"),
        (("info", "--jso", "x"), 2, "unrecognized arguments: x"),
        (("extract",), 2, "the following arguments are required: KEY"),
        (("validate", "--repeat", "0"), 2, "--repeat: '0'; allowed: a whole number from 1"),
        (("bench", "--seqlen-q", "0"), 2, "--seqlen-q: '0'; allowed: a whole number from 1"),
        (("bench", "--seqlen-q", "8", "--device", "x"), 1, "bench: --device x: allowed: a GPU's"),
        (("bench", "--seqlen-q", "8", "--heads-k", "3"), 1, "--heads-k 3: allowed: divisors of"),
        (("validate", "--seed", "x"), 2, "--seed: 'x'; allowed: a whole number from 0"),
        (("extract", "nothing"), 1, "extract: nothing: no such key or instance name; `aiter-attn"),
        (("extract", "nothing", "--arch", "gfx9999"), 1, "extract: --arch gfx9999: allowed: "),
        (("explain",), 2, "the following arguments are required: --dtype, --seqlen-q, --head-size"),
        (("explain", "--dtype", "fp8"), 2, "invalid choice: 'fp8' (choose from"),
        (("explain", *CALL, "--out-dtype", "fp16"), 2, "invalid choice: 'fp16' (choose from"),
        (("explain", *CALL, "--out-dtype", "bf16"), 1, "out_dtype: 'bfloat16', but q is float16"),
        (("explain", *CALL, "--heads-q", "3", "--heads-k", "2"), 1, "explain: k: 2 heads"),
        (("explain", *CALL, "--arch", "é"), 1, "explain: arch: 'é'; allowed: a name such as"),
        (("explain", *CALL, "--arch", ""), 1, "explain: arch: ''; allowed: a name such as"),
        (("extract", KERNELS[0]["key"], "-o", "-", "--json"), 1, "--json: not beside --output -"),
        (("explain", *CALL, "--batch", "-1"), 1, "explain: q: batch: -1; allowed: 0 to"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], status: int, message: str) -> None:
    done = run(*arguments)
    assert done.returncode == status
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def kernel(name: str, arch: str, key: str) -> dict[str, object]:
    return {"name": name, "arch": arch, "key": key}


BUILT = [
    kernel("one", "gfx942", "aaaaaaaa11"),
    kernel("one", "gfx950", "aaaaaaaa22"),
    kernel("two", "gfx942", "bbbbbbbb33"),
]


@pytest.mark.parametrize(
    ("wanted", "arch", "found"),
    [
        ("aaaaaaaa22", None, 1),
        ("aaaaaaaa2", None, 1),
        ("aaaaaaaa", "gfx950", 1),
        ("one", "gfx942", 0),
        ("two", None, 2),
    ],
)
def test_finding_a_kernel(
    wanted: str, arch: str | None, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aiter_attn, "kernels", lambda: BUILT)
    assert kernels.find_kernel(wanted, arch) == BUILT[found]


@pytest.mark.parametrize(("wanted", "arch"), [("soft", "sm_90"), ("cccccccc4", None)])
def test_finding_a_norm(wanted: str, arch: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    norm: dict[str, Any] = {"name": "soft", "operation": "softmax_forward"}
    norm["code_objects"] = {"sm_90": {"key": "cccccccc44", "size": 2048}}
    built = kernels.manifest()
    monkeypatch.setattr(kernels, "manifest", lambda: built | {"norms": [norm]})
    assert kernels.find_kernel(wanted, arch)["key"] == "cccccccc44"
    assert any(line.endswith("2.0 KiB  soft") for line in info.info_lines("soft"))


@pytest.mark.parametrize(
    ("wanted", "arch", "message"),
    [
        ("three", None, "three: no such key or instance name; `aiter-attn info --kernels` lists"),
        ("bbbbbbb", None, "bbbbbbb: no such key"),
        ("two", "gfx950", "--arch gfx950: allowed: gfx942"),
        ("one", None, "several code objects (gfx942 aaaaaaaa11, gfx950 aaaaaaaa22); add --arch"),
        ("aaaaaaaa", None, "several code objects"),
    ],
)
def test_finding_none_or_many_kernels(
    wanted: str, arch: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aiter_attn, "kernels", lambda: BUILT)
    with pytest.raises(LookupError, match=re.escape(message)):
        kernels.find_kernel(wanted, arch)


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    done = run("extract", KERNELS[0]["key"], "-o", str(tmp_path / "no folder" / "x"))
    assert done.returncode == 1
    assert "no folder" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "same"),
    [
        ((), {}),
        (("--backward", "--batch", "3", "--heads-q", "4"), {"backward": True}),
        (("--seqlen-k", "50", "--head-size-v", "64", "--window", "2", "-1"), {}),
        (("--sink",), {"sink": True}),
        (("--sink", "--backward"), {"sink": True, "backward": True}),
    ],
)
def test_explain(arguments: tuple[str, ...], same: dict[str, Any]) -> None:
    arch = KERNELS[0]["arch"]
    done = run("explain", *CALL, "--arch", arch, *arguments)
    assert done.returncode == 0, done.stderr
    told = aiter_attn.explain(*SHAPES, dtype="float16", causal=True, arch=arch, **same)
    names = [kernel["name"] for kernel in told.kernels]
    assert names
    assert all(f": {name}\n" in done.stdout for name in names)
    assert f", on {arch}\n" in done.stdout


# The text of `explain` about a call that no kernel of the set `core` serves.
@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--dropout", "0.1"), "fwd kernel in this build for fp16, head size 64, batch mode, "),
        (("--dropout", "0.1", "--backward"), "dropout"),
        (("--bias",), "an elementwise bias"),
        (("--bias", "--bias-grad", "--backward"), "the gradient of the bias"),
        (("--alibi", "--varlen"), "ALiBi"),
        (("--softcap", "30"), "a soft cap"),
        (("--deterministic", "--backward"), "dq summed in a fixed order"),
        (("--min-seqlen-q", "3", "--varlen"), "a least length of queries"),
        (("--cache",), "fwd_splitkv, fwd_splitkv_combine kernel in this build for fp16"),
        (("--cache", "--alibi", "--softcap", "3"), "lse not wanted, a soft cap, seqlen"),
        (("--cache", "--page-size", "128"), "keys and values in pages, pages of 128, seqlen"),
        (("--cache", "--page-size", "128", "--varlen"), "group mode, a mask, lse not wanted, keys"),
        (("--cache", "--lse"), "lse wanted"),
        (("--cache", "--sink"), "a mask, lse wanted, a sink"),
        (("--cache", "--varlen"), "fwd_batch_prefill kernel in this build for fp16, head size 64"),
        (("--cache", "--append", "2"), "fwd_appendkv kernel in this build for fp16, head size 64"),
        (("--cache", "--append", "2", "--rotary", "halves"), "rotation of halves, 2 new keys"),
        (("--cache", "--append", "2", "--rotary", "interleaved"), "interleaved"),
    ],
    ids=str,
)
def test_explain_takes_every_feature(
    flags: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *CALL, "--arch", str(KERNELS[0]["arch"]), *flags]) == 1
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--bias-grad", "--bias"), "--bias-grad: allowed with --backward only"),
        (("--bias-grad", "--backward"), "--bias-grad: allowed with --bias only"),
        (("--min-seqlen-q", "3"), "--min-seqlen-q: allowed with --varlen only"),
        (("--page-size", "16"), "--page-size: allowed with --cache only"),
        (("--splits", "2"), "--splits: allowed with --cache only"),
        (("--append", "2"), "--append: allowed with --cache only"),
        (("--lse",), "--lse: allowed with --cache only"),
        (("--cache", "--rotary", "halves"), "--rotary: allowed with --append only"),
        (("--alibi", "--bias"), "--alibi: not beside --bias; drop one of them"),
        (("--cache", "--backward"), "--cache: not beside --backward; drop one of them"),
        (("--cache", "--dropout", "0.1"), "--cache: not beside --dropout"),
        (("--cache", "--bias"), "--cache: not beside --bias"),
        (("--cache", "--deterministic"), "--cache: not beside --deterministic"),
        (("--cache", "--varlen", "--append", "1"), "--append: not beside --varlen"),
        (("--cache", "--page-size", "-1"), "--page-size: -1; allowed: 1 or more, or 0: in place"),
        (("--cache", "--splits", "129"), "num_splits: 129; allowed: 1 to 128, or 0"),
        (("--dropout", "1"), "dropout_p: 1.0; allowed: a probability below 1"),
    ],
    ids=str,
)
def test_explain_refuses_what_no_call_asks_for(
    flags: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *CALL, "--arch", str(KERNELS[0]["arch"]), *flags]) == 1
    assert f"explain: {message}" in capsys.readouterr().err


def test_explain_says_why_nothing_serves() -> None:
    varlen = run("explain", *CALL, "--arch", "gfx9999", "--varlen", "--heads-q", "6")
    assert varlen.returncode == 1
    assert (
        "explain: no fwd kernel in this build for fp16, head size 64, group mode" in varlen.stderr
    )
    assert "on gfx9999" in varlen.stderr
    known = "gfx1200, gfx1201, gfx90a, gfx942"
    assert f"no build has code for gfx9999: --//kernels:archs= takes {known}" in varlen.stderr
    assert "Traceback" not in varlen.stderr


def test_explain_without_an_arch_needs_a_gpu() -> None:
    done = run("explain", *CALL, AITER_ATTN_HIP_LIBRARY="/nowhere/libamdhip64.so.6")
    assert done.returncode == 1
    assert "explain: " in done.stderr
    assert "/nowhere/libamdhip64.so.6" in done.stderr


def test_import_brings_neither_a_gpu_runtime_nor_numpy() -> None:
    code = """
import sys
import aiter_attn
maps = open("/proc/self/maps").read()
print([name for name in ("amdhip", "hsa-runtime", "libcuda", "libstdc++") if name in maps])
print([name for name in ("numpy", "torch", "jax", "cupy", "argparse") if name in sys.modules])
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]
