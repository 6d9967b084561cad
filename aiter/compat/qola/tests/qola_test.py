# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The builder of QoLA's manifests with a stand-in for Bazel: what Bazel is asked for, and the
output tree."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aiter.compat import fields
from aiter.compat.qola import qola
from aiter.compat.qola.qola import Facts

MANIFEST = """
[qola]
aiter_commit = "7a24cd87525834fa9aeaa021e6ee80ab7de028f9"
namespace = "te"
rocm_versions = ["7.2"]
[build]
architectures = ["gfx950", "gfx942"]
[[modules]]
name = "libmha_fwd"
mode = "cpp_itfs"
receipt = 700
[[modules]]
name = "libmha_bwd"
group = "backward"
receipt = 700
mode = "cpp_itfs"
"""

# It records its arguments, makes the targets' files, and says which they are. FAIL names a library
# that it does not build, INTERRUPT one before which the user stops everything.
STAND_IN = """#!{python}
import os, signal, sys
from pathlib import Path
verb, *arguments = sys.argv[1:]
options = [a for a in arguments if a.startswith("-")]
with Path("asked").open("a") as asked:
    print(verb, *arguments, sep="\\t", file=asked)
for option in options:
    name, _, value = option.partition("=")
    if name == "--repo_env":
        Path("variant_set").write_text(Path(value.partition("=")[2]).read_text())
targets = [a for a in arguments if a not in options]
if verb == "cquery":
    (expression,) = targets
    targets = expression.split(" + ")
for target in targets:
    label = target.removeprefix("//").replace(":", "/")
    folder = Path("bazel-out", Path(label).parent)
    names = [Path(label).name]
    if "_headers_" in label:
        kind, _, pin = names[0].partition("_headers_")
        names = [f"{{pin}}/{{kind}}_mha_{{this}}.h" for this in ("fwd", "bwd")]
    for name in names:
        if verb == "cquery":
            print(folder / name)
            continue
        if os.environ.get("INTERRUPT", "none") in name:
            os.kill(os.getppid(), signal.SIGINT)
        if os.environ.get("FAIL", "none") in name:
            sys.exit(37)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{{name}} of {{' '.join(sorted(options))}}")
"""


@dataclasses.dataclass
class Scene:
    """A user's folder, and a checkout with the stand-in."""

    here: Path
    root: Path
    facts: Facts

    def run(self, *arguments: str, **environment: str) -> int:
        return qola.main(
            ["build", "--manifest=m.toml", "--output-dir=out", *arguments],
            self.facts,
            {
                "BUILD_WORKSPACE_DIRECTORY": str(self.root),
                "BUILD_WORKING_DIRECTORY": str(self.here),
                **environment,
            },
        )

    def asked(self, verb: str) -> list[list[str]]:
        lines = (self.root / "asked").read_text().splitlines()
        return [line.split("\t")[1:] for line in lines if line.startswith(f"{verb}\t")]

    def write(self, text: str) -> None:
        (self.here / "m.toml").write_text(text, "utf-8")

    def files(self) -> list[str]:
        """Those of the user's folder, but for the manifest."""
        found = [p.relative_to(self.here) for p in self.here.rglob("*") if not p.is_dir()]
        return sorted(str(path) for path in found if path.name != "m.toml")


@pytest.fixture
def scene(tmp_path: Path, facts: Facts) -> Scene:
    made = Scene(tmp_path / "here", tmp_path / "root", facts)
    made.here.mkdir()
    (made.root / "aiter/compat/include/ck_tile").mkdir(parents=True)
    (made.root / "aiter/compat/include/ck_tile/host.hpp").write_text("host")
    stand_in = made.root / "bazelw"
    stand_in.write_text(STAND_IN.format(python=sys.executable))
    stand_in.chmod(0o755)
    made.write(MANIFEST)
    return made


TREE = [
    "out/include/ck_tile/host.hpp",
    "out/include/mha_mha_bwd.h",
    "out/include/mha_mha_fwd.h",
    "out/include/qola_mha_bwd.h",
    "out/include/qola_mha_fwd.h",
    "out/lib/te_libmha_bwd.so",
    "out/lib/te_libmha_fwd.so",
    "out/manifest.json",
]


def test_the_tree(scene: Scene, capfd: pytest.CaptureFixture[str]):
    assert scene.run() == 0
    assert scene.files() == TREE
    assert (scene.here / "out/configs").is_dir()
    # Nothing else lies in the user's folder.
    assert sorted(path.name for path in scene.here.iterdir()) == ["m.toml", "out"]
    said = capfd.readouterr()
    assert said.out.splitlines()[-1] == "Build complete: 2/2 succeeded, 0 failed."
    assert "kernels of fwd_splitkv are left out" in said.err

    record = json.loads((scene.here / "out/manifest.json").read_text())
    assert list(record) == [
        "generated_at",
        "aiter_root",
        "manifest_src",
        "gpu_archs",
        "modules",
        "summary",
    ]
    assert record["manifest_src"] == str(scene.here / "m.toml")
    assert record["gpu_archs"] == "gfx950;gfx942"
    assert record["summary"] == {"total": 2, "success": 2, "failed": 0}
    first, second = record["modules"]
    assert list(first) == ["md_name", "success", "error", "so_path", "duration_s"]
    assert (first["md_name"], second["md_name"]) == ("te_libmha_fwd", "te_libmha_bwd")
    assert (first["success"], first["error"]) == (True, "")
    assert first["so_path"] == str(scene.here / "out/lib/te_libmha_fwd.so")
    assert first["duration_s"] >= 0


def test_what_bazel_is_asked_for(scene: Scene):
    assert scene.run() == 0
    headers = ["//aiter/compat:qola_headers_7a24cd8", "//aiter/compat:mha_headers_7a24cd8"]
    fwd, bwd = scene.asked("build")
    assert fwd[-3:] == ["//aiter/compat:7a24cd8/qola_libmha_fwd.so", *headers]
    assert bwd[-3:] == ["//aiter/compat:7a24cd8/qola_libmha_bwd.so", *headers]
    *flags, own, chosen = fwd[:-3]
    assert flags == [
        "--//aiter:namespace=te",
        "--//kernels:archs=gfx950,gfx942",
        "--//kernels:providers=ck,asm",
        "--config=cache",
    ]
    assert own.startswith("--repo_env=AITER_ATTN_VARIANT_SET=/")
    assert chosen == "--//kernels:variants=qola_manifest"
    # All calls have the same flags: a call with others would throw Bazel's analysis away.
    assert {tuple(call[:6]) for verb in ("build", "cquery") for call in scene.asked(verb)} == {
        tuple(fwd[:6])
    }
    assert (
        (scene.root / "variant_set")
        .read_text()
        .endswith("\n[[mha_fwd_variants]]\nreceipt = 700\n\n[[mha_bwd_variants]]\nreceipt = 700\n")
    )


def test_options(scene: Scene):
    assert scene.run("--arch=gfx942;gfx90a", "--arch=gfx942", "--group=backward", "-v") == 0
    (call,) = scene.asked("build")
    assert "--//kernels:archs=gfx942,gfx90a" in call
    assert {"--subcommands", "--verbose_failures"} <= set(call)
    assert [name for name in scene.files() if "/lib/" in name] == ["out/lib/te_libmha_bwd.so"]


def test_flags_of_the_build(scene: Scene):
    assert scene.run("--bazel-flag=--config=remote-cache", "--bazel-flag=--jobs=2") == 0
    call = scene.asked("build")[0]
    assert {"--config=remote-cache", "--jobs=2"} <= set(call)
    assert "--config=cache" not in call


def test_gpu_archs_stands_behind_all(scene: Scene):
    scene.write(MANIFEST.replace('architectures = ["gfx950", "gfx942"]', ""))
    assert scene.run(GPU_ARCHS="gfx942") == 0
    assert "--//kernels:archs=gfx942" in scene.asked("build")[0]


def test_aiters_objects_alone(scene: Scene):
    scene.write(MANIFEST.replace("receipt = 700", 'drop_directions = ["fwd", "bwd"]'))
    assert scene.run() == 0
    call = scene.asked("build")[0]
    assert "--//kernels:providers=asm" in call
    assert not any("variants" in argument or "repo_env" in argument for argument in call)


def test_another_tree_is_replaced(scene: Scene):
    assert scene.run() == 0
    (scene.here / "out/lib/te_libmha_old.so").write_text("old")
    assert scene.run("--group=backward") == 0
    assert [name for name in scene.files() if "/lib/" in name] == ["out/lib/te_libmha_bwd.so"]


def test_a_failed_library_leaves_the_tree_as_it_was(
    scene: Scene, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    assert scene.run("--group=backward") == 0
    before = {name: (scene.here / name).read_bytes() for name in scene.files()}
    capfd.readouterr()
    monkeypatch.setenv("FAIL", "libmha_bwd.so")
    assert scene.run() == 1
    assert {name: (scene.here / name).read_bytes() for name in scene.files()} == before
    assert capfd.readouterr().out.splitlines()[-2:] == [
        "Build complete: 1/2 succeeded, 1 failed.",
        "  FAILED: te_libmha_bwd: bazel build //aiter/compat:7a24cd8/qola_libmha_bwd.so failed "
        "with exit status 37",
    ]


def test_an_interruption_leaves_nothing(
    scene: Scene, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("INTERRUPT", "libmha_bwd.so")
    assert scene.run() == 130
    assert sorted(path.name for path in scene.here.iterdir()) == ["m.toml"]
    assert "nothing is written" in capfd.readouterr().err


def checkout(folder: Path) -> str:
    """A checkout of AITER with tables of tuned parameters; its commit."""
    (folder / "aiter/configs/model_configs").mkdir(parents=True)
    (folder / "aiter/configs/gemm.csv").write_text("gemm")
    (folder / "aiter/configs/model_configs/moe.csv").write_text("moe")
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@x"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *arguments], check=True)
    said = subprocess.run([*git, "rev-parse", "HEAD"], check=True, text=True, capture_output=True)
    return said.stdout.strip()


def test_the_checkout_of_aiter(scene: Scene, capfd: pytest.CaptureFixture[str]):
    head = checkout(scene.here / "aiter")
    assert scene.run("--aiter-root=aiter") == 1
    assert f"is at {head}, and aiter_commit is 7a24cd8" in capfd.readouterr().err

    scene.write(MANIFEST.replace("7a24cd87525834fa9aeaa021e6ee80ab7de028f9", ""))
    assert scene.run("--aiter-root=aiter") == 1
    assert f"aiter_commit {head} is not known" in capfd.readouterr().err

    known = {**scene.facts.commits, head[:7]: "e95f7d4"}
    scene.facts = dataclasses.replace(scene.facts, commits=known)
    assert scene.run("--aiter-root=aiter") == 0
    assert "//aiter/compat:e95f7d4/qola_libmha_fwd.so" in scene.asked("build")[0]
    record = json.loads((scene.here / "out/manifest.json").read_text())
    assert record["aiter_root"] == str(scene.here / "aiter")
    assert (scene.here / "out/configs/gemm.csv").read_text() == "gemm"
    assert (scene.here / "out/configs/model_configs/moe.csv").read_text() == "moe"


def test_a_folder_of_aiters_files_that_is_no_checkout(scene: Scene):
    (scene.here / "aiter").mkdir()
    assert scene.run("--aiter-root=aiter") == 0


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("7a24cd8", "ab55045", "aiter_commit ab55045"),
        ('"te"', '"te-v3"', "which is not a C identifier"),
        (
            "7.2",
            "5.7",
            "rocm_versions has '5.7'; the libraries load the HIP runtime of ROCm 8, 7, 6",
        ),
        ("receipt = 700", "receipt = 701", "receipt 701 is not known. Allowed: 600"),
        ("gfx950", "gfx1250", "[build] architectures: unknown arch 'gfx1250'. Allowed: gfx1200"),
        ("[build]", "[biuld]", "unknown table 'biuld'; did you mean 'build'?"),
        (
            "[[modules]]",
            "[[mha_fwd_variants]]\nhas_lse = false\n[[modules]]",
            "no instance has these",
        ),
        (
            "[[modules]]",
            "[[mha_fwd_variants]]\nhas_bais = true\n[[modules]]",
            "did you mean 'has_bias'",
        ),
    ],
)
def test_manifests_that_are_refused(
    scene: Scene, capfd: pytest.CaptureFixture[str], old: str, new: str, expected: str
):
    scene.write(MANIFEST.replace(old, new, 1))
    refused(scene, capfd, expected)


def refused(
    scene: Scene, capfd: pytest.CaptureFixture[str], expected: str, *arguments: str
) -> None:
    """Bazel is not asked, and nothing is written."""
    before = scene.files()
    assert scene.run(*arguments) == 1
    said = capfd.readouterr()
    assert "qola: error: " in said.err
    assert expected in said.err
    assert not said.out
    assert scene.files() == before
    assert not (scene.root / "asked").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--manifest=none.toml"], "none.toml: No such file or directory"),
        (["--arch=gfx9"], "--arch: unknown arch 'gfx9'. Allowed: gfx1200, gfx1201, gfx90a, gfx942"),
        (["--group=gemm"], "no module is of the group 'gemm'; its groups are backward."),
        (["--aiter-root=none"], "none is no folder; name a checkout of AITER"),
        (["--output-dir=m.toml"], "m.toml: is no folder; name another"),
        (["--output-dir=m.toml/out"], "m.toml/out: cannot be written: "),
        (["--output-dir=/proc/none/out"], "/proc/none/out: cannot be written: "),
    ],
)
def test_options_that_are_refused(
    scene: Scene, capfd: pytest.CaptureFixture[str], arguments: list[str], expected: str
):
    refused(scene, capfd, expected, *arguments)


def test_a_folder_with_files_of_others_is_left_alone(
    scene: Scene, capfd: pytest.CaptureFixture[str]
):
    (scene.here / "out").mkdir()
    (scene.here / "out/thesis.tex").write_text("years of work")
    refused(scene, capfd, "out: has thesis.tex, which is not of an output tree")


def test_an_empty_folder_is_taken(scene: Scene):
    (scene.here / "out").mkdir()
    assert scene.run() == 0
    assert scene.files() == TREE


def test_files_that_came_meanwhile_are_left_alone(
    scene: Scene, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    library = qola._library

    def meanwhile(*arguments: Any) -> dict[str, Any]:
        (scene.here / "out").mkdir(exist_ok=True)
        (scene.here / "out/thesis.tex").write_text("years of work")
        return library(*arguments)

    monkeypatch.setattr(qola, "_library", meanwhile)
    assert scene.run() == 1
    assert scene.files() == ["out/thesis.tex"]
    assert "has thesis.tex" in capfd.readouterr().err


def test_outside_of_bazel(facts: Facts, capfd: pytest.CaptureFixture[str]):
    assert qola.main(["build"], facts, {}) == 2
    assert "./bazelw run //:qola -- build" in capfd.readouterr().err


def test_usage(scene: Scene):
    with pytest.raises(SystemExit) as caught:
        scene.run("--mode=torch")
    assert caught.value.code == 2


def test_every_pin_is_known():
    assert set(qola.commits().values()) == set(fields.PINS)
    assert qola.commits()["33f2e6a"] == "d32b0cb"


def test_the_facts(facts: Facts):
    assert {"gfx942", "gfx950"} <= set(facts.archs)
    assert "7" in facts.rocm_majors
    assert os.path.exists(os.environ["POOL"])
