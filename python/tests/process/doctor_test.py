# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn doctor` on machines that are made here, and on this one.

A machine is a file system below a folder, an environment, and the answer of its HIP runtime, in the
words of the library. Its report is held to doctor/NAME.txt; with UPDATE_GOLDENS, a folder, the
reports are written there.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiter_attn
import pytest
from aiter_attn import _C
from aiter_attn._cli import doctor, info, variables
from aiter_attn._cli.machine import Machine

GOLDENS = Path(__file__).with_name("doctor")
WORKS = "HIP (/opt/rocm/lib/libamdhip64.so.6): 0 gfx942, 1 gfx942"
NO_GPU = (
    "/opt/rocm/lib/libamdhip64.so.6 finds no GPU; is the amdgpu driver loaded, and may this user "
    "open /dev/kfd?"
)
NO_RUNTIME = (
    "no HIP runtime on this machine (libamdhip64.so.7: cannot open shared object file; "
    "libamdhip64.so.6: cannot open shared object file); install ROCm's libamdhip64 6 or 7, or name "
    "its file in AITER_ATTN_HIP_LIBRARY"
)
DEVICES = ("dev/kfd", "dev/dri/renderD128", "dev/dri/renderD129")


class Made(Machine):
    """A machine below a folder. Its user is ada, and `denied` are closed to her."""

    def __init__(self, root: Path, environ: Mapping[str, str], denied: tuple[str, ...]) -> None:
        super().__init__(root, environ)
        self.denied = denied

    def user(self) -> str:
        return "ada"

    def may_write(self, path: str) -> bool:
        return path not in self.denied

    def owner(self, path: str) -> str:
        return "group render, mode 0660"


@dataclasses.dataclass(frozen=True)
class Case:
    """driver: the words of the HIP runtime; versions: of the GPUs in the kernel's topology."""

    driver: str
    versions: tuple[int, ...] = (0, 90402, 90402)
    files: tuple[str, ...] = DEVICES
    bus: tuple[tuple[str, str], ...] = ()
    environ: Mapping[str, str] = dataclasses.field(default_factory=dict)
    denied: tuple[str, ...] = ()
    runtime: str = "libamdhip64.so.6.4.43484"
    archs: tuple[str, ...] = ("gfx942",)
    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)
    missing: tuple[str, ...] = ()

    def made(self, root: Path) -> Made:
        for number, version in enumerate(self.versions):
            node = root / f"sys/class/kfd/kfd/topology/nodes/{number}"
            node.mkdir(parents=True)
            (node / "properties").write_text(f"simd_count 0\ngfx_target_version {version}\n")
        for number, (vendor, kind) in enumerate(self.bus):
            device = root / f"sys/bus/pci/devices/0000:0{number}:00.0"
            device.mkdir(parents=True)
            (device / "vendor").write_text(vendor + "\n")
            (device / "class").write_text(kind + "\n")
        for file in self.files:
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).touch()
        library = root / "opt/rocm/lib/libamdhip64.so.6"
        library.parent.mkdir(parents=True)
        library.symlink_to(self.runtime)
        (library.parent / self.runtime).touch()
        (root / "home/ada").mkdir(parents=True)
        return Made(root, {"HOME": "/home/ada", **self.environ}, self.denied)

    def told(self) -> dict[str, Any]:
        driver = {"name": "ROCm", "usable": self.driver.startswith("HIP "), "text": self.driver}
        return {
            "version": "1.2.3",
            "abi_version": 1,
            "python": "3.11.2",
            "frameworks": {"torch": "2.13.0", "jax": None},
            "variant_set": "core",
            "not_locked": [],
            "archs": list(self.archs),
            "drivers": [driver],
            "providers": [
                {"name": "the library", "kernels": 5, "refused": ""},
                *({"name": n, "kernels": 0, "refused": why} for n, why in self.refused.items()),
            ],
            "kernels": [
                *({"arch": arch, "found_in": "the library"} for arch in self.archs),
                *({"arch": arch, "found_in": None} for arch in self.missing),
            ],
        }


CASES = {
    "works": Case(WORKS),
    "emulated": Case(WORKS, versions=(), files=()),
    "no_gpu": Case(NO_RUNTIME, versions=(0,), files=(), bus=(("0x8086", "0x030000"),)),
    "no_driver": Case(
        NO_GPU, versions=(), files=(), bus=(("0x1002", "0x120000"), ("0x1002", "0x060400"))
    ),
    "no_permission": Case(NO_GPU, denied=("/dev/kfd", "/dev/dri/renderD129")),
    "no_permission_in_a_container": Case(
        NO_GPU, files=(*DEVICES, ".dockerenv"), denied=("/dev/kfd",)
    ),
    "container_without_the_device": Case(NO_GPU, files=("run/.containerenv",)),
    "wrong_arch": Case("HIP (/opt/rocm/lib/libamdhip64.so.6): 0 gfx90a", versions=(90010,)),
    "old_runtime": Case(WORKS, runtime="libamdhip64.so.6.1.60103"),
    "no_runtime": Case(NO_RUNTIME),
    "hidden": Case(NO_GPU, environ={"ROCR_VISIBLE_DEVICES": "", "AITER_ATTN_TURBO": "1"}),
    "without_kernels": Case(WORKS, archs=()),
    "cache_that_cannot_be_written": Case(
        WORKS, environ={"AITER_ATTN_CACHE_DIR": "/home/ada"}, denied=("/home/ada",)
    ),
    "machine_cache": Case(WORKS, environ={"AITER_ATTN_MACHINE_CACHE": "/opt/attn"}),
    "packs": Case(
        WORKS,
        archs=("gfx942", "gfx950"),
        refused={
            "pack '/packs/old.attnpack'": "was made with aiter-attn 1.2.2, but this is 1.2.3; "
            "install aiter-attn-kernels-gfx942-core==1.2.3",
            "pack '/nowhere'": "cannot be found: No such file or directory",
        },
        missing=("gfx950", "gfx942", "gfx950"),
    ),
    "variables_of_ck_jit": Case(
        WORKS,
        environ={
            "CK_JIT_CACHE_DIR": "te_ck_jit",
            "CK_JIT_EXTRA_CACHE_KEY": "a1",
            "CK_JIT_JOBS": "8",
            "CK_JIT_ROOT": "/opt/te/ck_jit",
            "CK_JIT_VERBOSE": "1",
            "NVTE_CK_JIT": "0",
            "NVTE_CK_JIT_DIR": "/opt/te/ck_jit",
            "PATH": "/bin",
        },
    ),
    "variables_of_others": Case(
        WORKS,
        environ={
            "AITER_ATTN_CACHE_DIR": "cache",
            "AITER_ATTN_KERNEL": "asm",
            "AITER_ATTN_MACHINE_CACHE": "shared",
            "CK_JIT_CACHE_DIR": "/scratch/te_ck_jit",
            "HIP_VISIBLE_DEVICES": "0",
            "NVTE_CK_USES_FWD_V3": "1",
            "QOLA_PREBUILT_DIR_MHA": "/opt/qola",
            "PATH": "/bin",
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_machine_gets_its_report(name: str, tmp_path: Path) -> None:
    told = CASES[name].told()
    findings = doctor.examine(CASES[name].made(tmp_path), told)
    report = "\n".join(doctor.lines(findings, told)) + "\n"
    if folder := os.environ.get("UPDATE_GOLDENS"):
        Path(folder, f"{name}.txt").write_text(report, encoding="utf-8")
    assert report == (GOLDENS / f"{name}.txt").read_text(encoding="utf-8")
    assert max(len(line) for line in report.splitlines()) <= 100
    wrong = [finding for finding in findings if finding.state == doctor.WRONG]
    assert all(finding.next for finding in wrong), "there is a next step for all that is wrong"
    assert bool(wrong) == (name not in ("works", "emulated"))


def test_there_is_a_report_for_each_machine_and_no_other() -> None:
    assert {file.stem for file in GOLDENS.glob("*.txt")} == set(CASES)


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    return subprocess.run(
        [sys.executable, "-m", "aiter_attn", "doctor", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, **environment},
    )


def test_this_machine_has_no_runtime_and_the_exit_status_says_so() -> None:
    missing = {"AITER_ATTN_HIP_LIBRARY": "/nowhere/libamdhip64.so.6"}
    done = run(**missing)
    assert done.returncode == 1, done.stderr
    assert "/nowhere/libamdhip64.so.6" in done.stdout and "next: name another" in done.stdout
    assert run("--json", **missing).returncode == 1


def test_programs_get_the_findings(tmp_path: Path) -> None:
    done = run("--json", AITER_ATTN_CACHE_DIR=str(tmp_path), NVTE_CK_JIT="1")
    told = json.loads(done.stdout)
    assert told["version"] == info.facts()["version"]
    assert told["works"] is (done.returncode == 0)
    assert told["works"] is all(f["state"] != "wrong" for f in told["findings"])
    (cache,) = [f for f in told["findings"] if f["part"] == "cache"]
    assert cache["state"] == "ok" and f"{tmp_path}/code-objects" in cache["text"]
    (own,) = [f for f in told["findings"] if "NVTE_CK_JIT=1 (TransformerEngine)" in f["text"]]
    assert own["state"] == "note"


def test_a_wrong_argument_is_refused_with_another_status() -> None:
    assert run("--jsn").returncode == 2


def test_a_cache_that_others_may_write_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "code-objects"
    folder.mkdir()
    for mode, works in ((0o755, True), (0o777, False), (0o1777, True)):
        folder.chmod(mode)
        done = run("--json", AITER_ATTN_CACHE_DIR=str(tmp_path))
        (cache,) = [f for f in json.loads(done.stdout)["findings"] if f["part"] == "cache"]
        assert (cache["state"] == "ok") is works, cache
        assert works or f"chmod go-w {folder}" in cache["next"]


def test_a_folder_that_may_not_be_written_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o500)
    # A superuser may write everywhere.
    expected = os.geteuid() == 0
    assert Machine(Path("/"), {}).may_write(str(folder)) is expected
    assert Machine(tmp_path, {}).may_write("/cache") is expected


def test_the_kernels_are_of_the_version_that_old_runtimes_refuse() -> None:
    # EI_ABIVERSION of an ELF file; 4 is that of code objects of version 6. AITER's objects are of
    # version 5 or 6.
    for kernel in aiter_attn.kernels():
        versions = (3, 4) if kernel["provider"] == "asm" else (4,)
        assert _C.code_object(kernel["key"])[8] in versions, kernel["name"]


@pytest.mark.parametrize(
    ("version", "name"),
    [(90402, "gfx942"), (90500, "gfx950"), (90010, "gfx90a"), (110501, "gfx1151")],
)
def test_archs_have_their_names(version: int, name: str, tmp_path: Path) -> None:
    assert Case(WORKS, versions=(0, version)).made(tmp_path).archs_of_kernel() == [name]


def test_every_variable_of_a_project_is_told_in_a_short_line() -> None:
    tables = json.loads(Path(variables.__file__).with_name("variables.json").read_text())
    foreign = {name: project for project, table in tables["foreign"].items() for name in table}
    names = [name.replace("*", "GROUP") for name in foreign]
    assert len(names) == len(set(names)) > 40
    told = {v.name: v for v in variables.in_environment(dict.fromkeys(names, "1"))}
    for name, project in foreign.items():
        variable = told[name.replace("*", "GROUP")]
        assert variable.of == project
        assert variable.here.startswith(("not read: ", "not needed: ", "read: "))


def test_the_environment_of_a_stranger_is_not_told() -> None:
    assert not list(variables.in_environment({"PATH": "/bin", "QOLA": "1", "NVTE_OTHER": "1"}))
