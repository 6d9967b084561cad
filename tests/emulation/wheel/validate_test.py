# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn validate` on the emulated GPU: what it does, and what it finds when kernels are
broken and results are damaged."""

from __future__ import annotations

import abc
import dataclasses
import json
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiter_attn
import numpy as np
import pytest
from aiter_attn._cli import validate
from aiter_attn._cli.hardware import attention, cases, norms
from aiter_attn._cli.hardware.cases import Case
from aiter_attn._cli.hardware.memory import Memory
from aiter_attn._cli.main import main
from gfxemu import Device
from gfxemu.decoder import replace

from tests.emulation.wheel import wheel_contents
from tests.emulator.hip.emulated_hip import EmulatedDeviceError, Runtime
from tests.emulator.hip.hip import Hip

SMALL = Case("float16", 64, 64, ((33, 47),), causal=True)
GROUPED = Case("float16", 64, 64, ((33, 47),) * 2, heads_q=4, causal=True, sink=True)

pytestmark = pytest.mark.usefixtures("runtime")


@pytest.fixture(autouse=True)
def arch(monkeypatch: pytest.MonkeyPatch) -> str:
    """The first of the wheel's. The emulator's fills are slow."""
    monkeypatch.setattr(Memory, "flushed_bytes", 1 << 16)
    return wheel_contents.ARCHS[0]


@pytest.fixture
def device(hip: Hip, arch: str) -> str:
    return str(hip.device_of(arch))


@pytest.fixture
def validated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Validates cases: the exit status and the report."""

    def run(*chosen: Case, arguments: tuple[str, ...] = ()) -> tuple[int, dict[str, Any]]:
        path = tmp_path / "report.json"
        path.unlink(missing_ok=True)
        if chosen:
            monkeypatch.setattr(cases, "candidates", lambda arch, quick: chosen)
            monkeypatch.setattr(norms, "cases", lambda quick: ())
        known = ("validate", "--device", device, "--repeat", "3", "--timed", "1")
        known += ("--output", str(path))
        status = main([*known, *arguments])
        return status, json.loads(path.read_text()) if path.exists() else {}

    return run


def findings(report: dict[str, Any]) -> list[str]:
    return [finding for case in report["cases"] for finding in case["findings"]]


def test_the_report(
    validated: Any, runtime: Runtime, tmp_path: Path, arch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, report = validated(SMALL, GROUPED)
    said = capsys.readouterr().out
    assert status == 0, said
    assert (report["format"], report["format_version"]) == ("aiter-attn validation", 1)
    assert [case["verdict"] for case in report["cases"]] == ["ok", "ok"]
    assert findings(report) == []
    # The kernels that are told are those that ran.
    ran = {wheel_contents.KINDS[launch.symbol] for launch in runtime.launches}
    told = {
        kernel["kind"]
        for case in report["cases"]
        for kernels in case["kernels"].values()
        for kernel in kernels
    }
    assert told == ran >= {"fwd", "bwd_dot_do_o", "bwd_dq_dk_dv", "sum_heads", "sink_grad"}
    names = {kernel["name"] for kernel in aiter_attn.kernels() if kernel["arch"] == arch}
    missed = {kernel["name"] for kernel in report["summary"]["kernels_not_reached"]}
    assert missed < names
    assert not missed & {launch.symbol for launch in runtime.launches}
    assert len(missed) + report["summary"]["kernels_run"] == len(
        {kernel["key"] for kernel in aiter_attn.kernels() if kernel["arch"] == arch}
    )
    for case, outputs in zip(report["cases"], (5, 6), strict=True):
        assert len(case["errors"]) == outputs
        # The rounding of the results alone is 0.5.
        assert all(0 < error < 4 for name, error in case["errors"].items()), case["errors"]
        assert case["within_tolerance"] == ["dq"]
        assert set(case["milliseconds"]) == {"forward", "backward"}
        assert all(times["least"] > 0 for times in case["milliseconds"].values())
    assert report["torch"] == "none: torch is not installed"
    assert "torch beside ours: none: torch is not installed" in said
    machine = report["machine"]
    assert machine["gpu"]["arch"] == arch
    assert machine["info"]["version"] == aiter_attn.__version__
    assert {"part", "state", "text", "next"} == set(machine["doctor"][0])
    lines = said.splitlines()
    assert max(map(len, (line for line in lines if line.startswith(("1/", "2/"))))) <= 100
    assert re.fullmatch(
        rf"2 passed, 0 failed, 0 left out, 0 not begun; \d+ of \d+ kernels ran; next: keep or send "
        rf"{re.escape(str(tmp_path / 'report.json'))}",
        lines[-1],
    )
    assert not list(tmp_path.glob("*.partial"))


class _Tensor:
    """Of a torch that computes nothing."""

    transpose = detach = requires_grad_ = lambda self, *_: self


def test_torch_is_timed_beside_what_it_has(
    validated: Any, device: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a stand-in for torch: a causal mask that is aligned as ours, and no sinks."""
    drawn, masks, gradients = [], [], []

    def draw(*shape: int, **options: Any) -> _Tensor:
        drawn.append((shape, options))
        return _Tensor()

    def attend(*arrays: Any, is_causal: bool) -> _Tensor:
        masks.append(is_causal)
        return _Tensor()

    torch = types.SimpleNamespace(
        __version__="2.99+rocm7",
        Tensor=_Tensor,
        autograd=types.SimpleNamespace(grad=lambda *_, **__: gradients.append(1)),
        cuda=types.SimpleNamespace(is_available=lambda: True),
        float16="half",
        nn=types.SimpleNamespace(
            functional=types.SimpleNamespace(scaled_dot_product_attention=attend)
        ),
        randn=draw,
        version=types.SimpleNamespace(hip="7.0"),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    square = Case("float16", 64, 64, ((33, 33),), copies=2, causal=True)
    chosen = [dataclasses.replace(case, base=True) for case in (square, SMALL, GROUPED)]
    status, report = validated(*chosen)
    said = capsys.readouterr().out
    assert status == 0, said
    assert report["torch"] == "2.99+rocm7"
    assert "torch beside ours: 2.99+rocm7" in said
    timed = [case["torch_milliseconds"] for case in report["cases"]]
    assert [set(times) for times in timed] == [{"forward", "backward"}, set(), set()]
    assert drawn == [((2, 33, 2, 64), {"device": f"cuda:{device}", "dtype": "half"})] * 4
    # One more for the gradients, and before each measurement one that is not counted.
    assert masks == [True] * 3 and len(gradients) == 2


def test_a_file_is_not_written_over(
    device: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.json"
    path.write_text("mine")
    assert main(["validate", "--device", device, "--output", str(path)]) == 2
    assert "is there, and nothing is written over it" in capsys.readouterr().err
    assert path.read_text() == "mine"
    assert main(["validate", "--device", device, "--output", str(tmp_path / "no" / "x")]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_what_is_chosen(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    def listed(*arguments: str) -> list[str]:
        assert main(["validate", "--device", device, "--list", *arguments]) == 0
        return capsys.readouterr().out.splitlines()[2:]

    everything, quick = listed(), listed("--quick")
    assert any("512x640*16" in line for line in everything)
    assert not any("512x640" in line for line in quick)
    sums = listed("--kernels", "sum_heads")[:-1]
    assert sums and all("sum_heads" in line for line in sums)
    assert main(["validate", "--device", device, "--kernels", "nothing"]) == 2
    assert "--kernels nothing: no call reaches such a kernel" in capsys.readouterr().err
    assert main(["validate", "--device", "7"]) == 2
    assert "--device 7: no such GPU; there are: 0 gfx" in capsys.readouterr().err


def test_it_stops_in_time(validated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = types.SimpleNamespace(now=0.0)
    monkeypatch.setattr(validate, "time", types.SimpleNamespace(monotonic=lambda: clock.now))
    right = attention.run_case

    def slow(*arguments: Any) -> Any:
        clock.now += 60.0
        return right(*arguments)

    monkeypatch.setattr(attention, "run_case", slow)
    status, report = validated(SMALL, GROUPED, arguments=("--seconds", "50"))
    assert (status, report["summary"]["passed"]) == (0, 1)
    assert report["summary"]["not_begun"] == [GROUPED.name]
    assert report["summary"]["kernels_not_run"]


def test_norms_are_left_out_without_a_compiler(
    validated: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AITER_ATTN_HIPRTC_LIBRARY", "/nowhere/libhiprtc.so.6")
    status, report = validated(arguments=("--quick", "--kernels", "softmax"))
    assert (status, report["summary"]["left_out"]) == (2, 3)
    assert [case["verdict"] for case in report["cases"]] == ["left out"] * 3
    assert "/nowhere/libhiprtc.so.6" in report["cases"][0]["why"]
    assert "0 passed, 0 failed, 3 left out" in capsys.readouterr().out


def test_bench(device: str, runtime: Runtime, capsys: pytest.CaptureFixture[str]) -> None:
    shape = ("--seqlen-q", "33", "--seqlen-k", "47", "--heads", "2", "--head-size", "64")
    more = ("--dtype", "fp16", "--causal", "--backward", "--runs", "2", "--json")
    assert main(["bench", "--device", device, *shape, *more]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(row["pass"], row["by"]) for row in told["rows"]] == [
        ("forward", "aiter-attn"),
        ("backward", "aiter-attn"),
    ]
    assert all(0 < row["least"] <= row["median"] for row in told["rows"])
    # The first, one that is not counted, and two.
    kinds = [wheel_contents.KINDS[launch.symbol] for launch in runtime.launches]
    assert (kinds.count("fwd"), kinds.count("bwd_dq_dk_dv")) == (4, 4)


class Damage(abc.ABC):
    """Changes results of a function of the package after it is called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
        self.calls = 0
        self.right: Any = getattr(aiter_attn, function)
        monkeypatch.setattr(aiter_attn, function, self)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        made = self.right(*arguments, **options)
        self.calls += 1
        self.change(arguments, made, options)
        return made

    @abc.abstractmethod
    def change(self, arguments: Any, made: Any, options: Any) -> None: ...


def write(array: Any, offset: int, byte: int) -> None:
    """One byte, counted from the array's first."""
    array.memory.wait()
    array.memory.to_device(array.address + offset, np.array([byte], np.uint8))


def test_a_wrong_value_is_found(validated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(Damage):
        def change(self, arguments: Any, made: Any, options: Any) -> None:
            write(made[0], 2 * (5 * 2 * 64 + 7) + 1, 0x44)  # out[0, 5, 0, 7] = 4.something

    Wrong(monkeypatch, "mha_fwd")
    status, report = validated(SMALL)
    assert status == 1
    (found,) = findings(report)
    assert re.match(r"numbers: out: repeat 0 is wrong by \d+\.\d ulp \(allowed: 4\), the most at "
                    r"\[5, 0, 7\]: 4", found)  # fmt: skip
    assert report["summary"]["failed"] == 1


@pytest.mark.parametrize(("offset", "side"), [(-3, "before"), (33 * 2 * 64 * 2 + 9, "behind")])
def test_a_write_beside_a_result_is_found(
    validated: Any, monkeypatch: pytest.MonkeyPatch, offset: int, side: str
) -> None:
    class Beside(Damage):
        def change(self, arguments: Any, made: Any, options: Any) -> None:
            if self.calls == 2:
                write(made[0], offset, 0)

    Beside(monkeypatch, "mha_fwd")
    status, report = validated(SMALL)
    assert status == 1
    at = 3 if side == "before" else 10
    assert findings(report) == [
        f"guard: out of repeat 1: 1 of the 4096 guard bytes {side} it were written, {at} to {at} "
        "bytes from it"
    ]


def test_repeats_that_differ_are_found(validated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Racy(Damage):
        def change(self, arguments: Any, made: Any, options: Any) -> None:
            # The last bit of an element of dq, which may differ, and of dk, which may not.
            for array in made[:2] if self.calls == 3 else ():
                array.memory.wait()
                write(array, 64, int(array.memory.to_host(array.address + 64, 1)[0]) ^ 1)

    Racy(monkeypatch, "mha_bwd")
    status, report = validated(SMALL)
    assert status == 1
    (found,) = findings(report)
    assert re.match(r"repeat: dk: 1 of \d+ elements of repeat 2 differ from the first, at "
                    r"\[0, 0, 0, 32\]", found)  # fmt: skip


def test_a_changed_input_is_found(validated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Writes(Damage):
        def change(self, arguments: Any, made: Any, options: Any) -> None:
            if self.calls == 3:
                write(arguments[2], 4, 0x3C)  # k

    Writes(monkeypatch, "mha_bwd")
    status, report = validated(SMALL)
    assert (status, findings(report)) == (1, ["input: k was changed"])


def test_a_result_that_is_not_written_is_found(
    validated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unwritten(Damage):
        def change(self, arguments: Any, made: Any, options: Any) -> None:
            made[1].memory.wait()
            fresh = made[1].memory.empty(made[1].shape, made[1].dtype).read()
            made[1].memory.to_device(made[1].address, fresh[:, :1, :4].copy())

    Unwritten(monkeypatch, "mha_fwd")
    status, report = validated(Case("float16", 64, 64, ((33, 47),), causal=True, backward=False))
    assert status == 1
    assert "numbers: lse: repeat 0 is wrong by not finite where it must be" in findings(report)[0]


def test_a_broken_kernel_is_found(validated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One instruction of the forward kernel: the exponential of a score is the score."""
    intact = Device.program

    def broken(device: Device, code: bytes, symbol: str) -> Any:
        kernel, program = intact(device, code, symbol)
        if wheel_contents.KINDS[symbol] == "fwd":
            at = next(i for i in program.instructions if i.name.startswith("v_exp_f32"))
            text = re.sub(r"v_exp_f32\w*", "v_mov_b32", at.text)
            program = replace(program, index=at.index, text=text)
        return kernel, program

    monkeypatch.setattr(Device, "program", broken)
    status, report = validated(Case("float16", 64, 64, ((33, 47),), causal=True, backward=False))
    assert status == 1
    assert findings(report)[0].startswith("numbers: out: repeat 0 is wrong by ")


def test_a_kernel_that_faults_ends_it(
    validated: Any, monkeypatch: pytest.MonkeyPatch, runtime: Runtime
) -> None:
    intact = Device.program

    def broken(device: Device, code: bytes, symbol: str) -> Any:
        kernel, program = intact(device, code, symbol)
        for at in [i for i in program.instructions if i.name == "s_barrier"]:
            program = replace(program, index=at.index, text="s_nop 0")
        return kernel, program

    monkeypatch.setattr(Device, "program", broken)
    status, report = validated(SMALL, GROUPED)
    assert status == 1
    (found,) = findings(report)
    assert found == "error: HipError: hipDeviceSynchronize: hipErrorLaunchFailure (719)"
    assert report["summary"]["not_begun"] == [GROUPED.name]
    with pytest.raises(EmulatedDeviceError, match="race"):
        runtime.raise_failures()
    runtime.recover()
