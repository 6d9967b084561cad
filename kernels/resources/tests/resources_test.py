# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The program from its command line to its output, with figures of real code objects.

In the place of Bazel stands a program that gives the figures of smoke by Bazel's events.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from kernels.archs.archs import read_archs
from kernels.resources import resources

# Rows of kernels of our own, which are of every set.
OWN = [row for path in os.environ["OWN_ROWS"].split() for row in json.loads(Path(path).read_text())]
KNOWN = ", ".join(read_archs(os.environ["ARCHS"]))
_BAZEL = """
import json, re, sys
from pathlib import Path
options = dict(a.partition("=")[::2] for a in sys.argv[1:] if a.startswith("--"))
workspace, _, more = options["--package_path"].partition(":")
assert workspace == "%workspace%" and sys.argv[-1] == "//kernels/chosen"
package = Path(more, "kernels/chosen")
labels = json.loads(re.search("deps = (.*)[)]", (package / "BUILD.bazel").read_text())[1])
Path("rule").write_text((package / "chosen.bzl").read_text())
Path("called").write_text(json.dumps([sys.argv[1:], labels]))
known = {file.name.removesuffix(".figures.json"): file for file in map(Path, FILES)}
missing = [label for label in labels if label.partition(":")[2] not in known]
if missing:
    sys.exit("ERROR: no such target " + missing[0])
found = [known[label.partition(":")[2]] for label in labels]
events = [{"id": {"started": {}}}, {"namedSetOfFiles": {"files": [
    {"name": file.name, "uri": SCHEME + "://" + str(file).replace("+", "%2B")} for file in found
]}}]
Path(options["--build_event_json_file"]).write_text("".join(json.dumps(e) + "\\n" for e in events))
print("Bazel's own words")
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return _checkout(tmp_path, "file")


def _checkout(root: Path, scheme: str) -> Path:
    listed = Path(os.environ["FIGURES"]).read_text("ascii").split()
    files = [str(Path(name).resolve()) for name in listed]
    program = root / "bazel.py"
    program.write_text(f"FILES = {files!r}\nSCHEME = {scheme!r}\n{_BAZEL}")
    bazelw = root / "bazelw"
    bazelw.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$@"\n')
    bazelw.chmod(0o755)
    return root


def run(root: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    files = {
        "pool": "POOL",
        "readme": "SETS_README",
        "archs_file": "ARCHS",
    }
    given = [f"--{flag}={os.environ[name]}" for flag, name in files.items()]
    given += [f"--own_rows={path}" for path in os.environ["OWN_ROWS"].split()]
    given += ["--quick_sets=smoke"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("BUILD_WORKSPACE_DIRECTORY", None)
    if root:
        environment |= {
            "BUILD_WORKSPACE_DIRECTORY": str(root),
            "BUILD_WORKING_DIRECTORY": str(root),
        }
    return subprocess.run(
        [sys.executable, "-B", resources.__file__, *given, *arguments],
        capture_output=True,
        text=True,
        env=environment,
    )


def test_the_table_of_smoke(checkout: Path) -> None:
    done = run(checkout, "--variants=smoke", "--archs=gfx942")
    assert done.returncode == 0, done.stderr
    arch, _, heads, *rows = done.stdout.splitlines()
    assert arch == "gfx942"
    assert heads.split() == [
        *("provider", "vgpr", "agpr", "sgpr", "lds", "scratch", "vspill", "sspill", "waves"),
        *("insts", "loopscr", "looplane", "early", "loop", "waits", "nops", "cycles"),
    ]
    named = {row[:46].strip(): row.split()[-16:] for row in rows[: rows.index("")]}
    forward = named["fwd d64 fp16 batch qr async psskddv mask lse"]
    # 64 items of the head, 256 threads, LDS of one K and one V tile: those of CK's tile.
    assert (forward[3], forward[5], forward[9]) == ("13824", "0", "0")
    assert int(forward[12]) > 0
    assert len(named) == 4 + len(OWN)
    assert (
        f"Of {4 + len(OWN)} kernels: no workgroup fits 0, scratch in loops 0, spills 0, one wave 1."
        in done.stdout
    )
    assert "Bazel's own words" not in done.stdout
    assert (
        f"{4 + len(OWN)} kernels for gfx942; compiling those that are in no cache takes up to"
        in done.stderr
    )


def test_bazel_is_asked_for_the_kernels_of_the_sets_and_nothing_else(checkout: Path) -> None:
    run(checkout, "--variants=smoke", "--bazel_flag=--config=odd")
    arguments, labels = json.loads((checkout / "called").read_text())
    assert arguments[:3] == ["build", "--config=odd", "--//kernels:archs=gfx942"]
    rule = (checkout / "rule").read_text()
    assert 'load("//kernels/resources:figures.bzl", "code_object_figures")' in rule
    assert "dep[OutputGroupInfo].figures" in rule
    assert "attr.label_list(aspects = [code_object_figures])" in rule
    assert len(labels) == 4 + len(OWN)
    assert all(label.endswith(".gfx942") for label in labels)
    assert "@ck_fmha//bwd/fp16_d64:fmha_bwd_dot_do_o_d64_fp16_b64_batch_o2_ps.gfx942" in labels
    assert "//kernels/sum_heads:attn_sum_heads_fp16.gfx942" in labels
    assert "//kernels/dropout_mask:attn_dropout_mask_u8.gfx942" in labels


def test_aiters_kernels_are_asked_for_but_of_sets_of_quick_work(checkout: Path) -> None:
    def labels(*arguments: str) -> list[str]:
        run(checkout, *arguments)
        asked: list[str] = json.loads((checkout / "called").read_text())[1]
        return [label for label in asked if "aiter_asm" in label]

    both = "--archs=gfx942,gfx950"
    assert labels(both) == ["//kernels/aiter_asm:gfx942", "//kernels/aiter_asm:gfx950"]
    assert labels("--archs=gfx90a") == []
    assert labels("--variants=smoke", both) == []
    assert labels("--golden", both) == []  # of what a compiler has made


def test_json_csv_and_page_agree(checkout: Path) -> None:
    kinds = sorted({row["kind"] for row in OWN})
    without_own = [f"--where=kind!={kind}" for kind in kinds]
    given = ("--variants=smoke", *without_own, "--sort=-vgpr")
    records = json.loads(run(checkout, *given, "--format=json").stdout)
    done = run(checkout, *given, "--format=csv", "--page=page.html")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["instance"] for row in rows] == [record["instance"] for record in records]
    assert len(rows) == 4
    registers = [record["vgpr"] for record in records]
    assert registers == sorted(registers, reverse=True)
    assert [int(row["vgpr"]) for row in rows] == registers
    text = (checkout / "page.html").read_text("utf-8").partition("\n")[2]
    page = ElementTree.fromstring(text)  # noqa: S314 (written a line ago)
    assert page.findtext("./body/h1") == "What kernels need: smoke"
    names = [cell.get("title") for cell in page.findall("./body/section/table/tbody/tr/td[1]")]
    assert names == [row["instance"] for row in rows]
    assert shlex.join(given) in (page.findtext("./body/p/code") or "")


def test_chosen_columns_of_chosen_kernels(checkout: Path) -> None:
    done = run(
        checkout,
        "--variants=smoke",
        "--where=direction=bwd",
        "--where=waves<8",
        "--columns=kind,waves",
        "--worst=0",
    )
    assert done.stdout.split("\n\n")[1].splitlines()[1:] == [
        "bwd d64 fp16 batch npad mask bwd_dq_dk_dv     1"
    ]


def test_kernels_that_their_traits_rule_out_are_not_compiled(checkout: Path) -> None:
    done = run(checkout, "--variants=te", "--where=kind=bwd_dot_do_o", "--where=head_size_qk=64")
    # There are no figures of these here: the request alone counts.
    assert "resources: ./bazelw build failed: exit status 1" in done.stderr
    _, labels = json.loads((checkout / "called").read_text())
    assert labels
    assert all("/fmha_bwd_dot_do_o_d64_" in label.replace(":", "/") for label in labels)
    assert f"resources: {len(labels)} kernels for gfx942; compiling" in done.stderr


def test_a_build_against_another_of_itself_and_of_a_better_one(checkout: Path) -> None:
    text = run(checkout, "--variants=smoke", "--format=json").stdout
    before = json.loads(text)
    (checkout / "same.json").write_text(text)
    same = run(checkout, "--variants=smoke", "--against=same.json")
    assert same.stdout.splitlines()[2:4] == [f"kernels {len(before)}", "vspill 0 -> 0"]
    for record in before:
        record["vgpr_spills"] += 3
    (checkout / "worse.json").write_text(json.dumps(before))
    assert (
        f"vspill {3 * len(before)} -> 0"
        in run(checkout, "--variants=smoke", "--against=worse.json").stdout
    )


def test_the_golden_files_are_of_core_alone(checkout: Path) -> None:
    done = run(checkout, "--variants=smoke", "--golden")
    assert done.returncode == 1
    assert "--golden is of all of core: ./bazelw run //kernels:resources -- --golden" in done.stderr


def test_the_draw_of_kernels_outside_another_set(checkout: Path) -> None:
    done = run(checkout, "--variants=te", "--without=core", "--draw=5")
    # There are no figures of these here: the request alone counts.
    assert "resources: ./bazelw build failed: exit status 1" in done.stderr
    _, labels = json.loads((checkout / "called").read_text())
    assert len(set(labels)) == 5
    assert not any("sum_heads" in label for label in labels)
    run(checkout, "--variants=te", "--without=core", "--draw=5", "--seed=8")
    assert json.loads((checkout / "called").read_text())[1] != labels


def test_labels_in_the_place_of_sets(checkout: Path) -> None:
    label = "@ck_fmha//bwd/fp16_d64:fmha_bwd_dot_do_o_d64_fp16_b64_batch_o2_ps.gfx942"
    records = json.loads(run(checkout, f"--targets={label}", "--format=json").stdout)
    assert [record["kind"] for record in records] == ["bwd_dot_do_o"]
    done = run(checkout, "--targets=//kernels:none.gfx942")
    assert done.returncode == 1
    assert "ERROR: no such target //kernels:none.gfx942" in done.stderr


def test_files_that_bazel_left_on_a_server(tmp_path: Path) -> None:
    done = run(_checkout(tmp_path, "bytestream"), "--variants=smoke")
    assert done.returncode == 1
    assert "is at bytestream: and not here; build with --bazel_flag=--remote_down" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--variants=smock"], "resources: --variants: unknown variant set 'smock'; known: bench"),
        (["--without=nil"], "resources: --without: unknown variant set 'nil'; known: bench, "),
        (["--archs=gfx9"], f"--archs: unknown arch 'gfx9'; known: {KNOWN}"),
        (["--archs="], f"--archs: name at least one arch; known: {KNOWN}"),
        (["--sort=-cycle"], "--sort: unknown column 'cycle'; known: instance, arch, "),
        (["--columns=vgprs"], "--columns: unknown column 'vgprs'; known: instance, arch, "),
        (["--where=vgpr~3"], "--where=vgpr~3: write COLUMN, one of <= >= != = < >, and a value"),
        (["--variants=smoke", "--without=core"], "--without=core leaves nothing of smoke for gfx"),
        (["--variants=smoke", "--draw=0"], "--draw=0: name a number above 0, or leave it out"),
        (["--variants=smoke", "--where=dtype=bf15"], "no kernel has dtype 'bf15'; there are: bf16"),
        (
            ["--variants=smoke", "--where=dtype=fp16", "--where=head_size_qk=32"],
            "--where=dtype=fp16 --where=head_size_qk=32 leaves nothing of smoke for gfx942",
        ),
        (["--golden", "--where=dtype=fp16"], "--golden is of all of core: ./bazelw run"),
        (["--variants=smoke", "--against=none.json"], "none.json: not what --format=json prints"),
        (["smoke"], "what is 'smoke'?"),
    ],
)
def test_refusals(checkout: Path, arguments: list[str], words: str) -> None:
    done = run(checkout, *arguments)
    assert done.returncode != 0
    assert words in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["[]", "{}", "nothing", '[{"arch": "gfx942", "instance": "a"}]'])
def test_a_file_to_compare_with_that_is_of_something_else(checkout: Path, text: str) -> None:
    (checkout / "other.json").write_text(text)
    done = run(checkout, "--variants=smoke", "--against=other.json")
    assert done.returncode == 1
    assert "other.json: " in done.stderr
    assert "Traceback" not in done.stderr


def test_it_runs_through_bazel_alone() -> None:
    done = run(None, "--variants=smoke")
    assert done.returncode == 1
    assert "run it through Bazel: ./bazelw run //kernels:resources" in done.stderr
