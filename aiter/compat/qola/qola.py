# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Builds the libraries that a manifest of QoLA's asks for, into QoLA's output tree.

    ./bazelw run //:qola -- build --manifest=FILE --output-dir=FOLDER [--arch=ARCH]...

docs/consumers.md has the manifest's keys, the options and the tree.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aiter.compat import fields
from aiter.compat.qola.tree import TreeError, replaced
from kernels.archs.archs import read_archs
from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.ckgen.schema import parse_variant_set
from kernels.ck_fmha.ckgen.selection import select_instances
from kernels.qola import manifest as qola
from kernels.variants.values import VariantSetError

# The name of the manifest's variant set in the build.
_SET = "qola_manifest"
_HEADERS = Path("aiter/compat/include")


class QolaError(Exception):
    """A request that cannot be served, in one or two lines."""


@dataclasses.dataclass(frozen=True)
class Facts:
    """Names that manifests may have.

    commits      the first digits of each commit of AITER that is known -> its pin
    archs        those with a record
    rocm_majors  versions of ROCm whose runtime the libraries load
    pool         the kernels that a manifest's tables choose from
    """

    commits: Mapping[str, str]
    archs: Sequence[str]
    rocm_majors: Sequence[str]
    pool: RecordedPool


@dataclasses.dataclass(frozen=True)
class Bazel:
    """The checkout's Bazel: `command` is run in `root`, with `flags` behind each build."""

    root: Path
    flags: Sequence[str]
    command: Sequence[str] = ("./bazelw",)

    def build(self, *targets: str) -> int:
        """Its exit status; messages go to stderr."""
        return self._run("build", *targets).returncode

    def outputs(self, *targets: str) -> list[Path]:
        """The files of targets that are built. Raises QolaError."""
        said = self._run("cquery", "--output=files", " + ".join(targets))
        if said.returncode:
            raise QolaError(f"bazel cquery failed with exit status {said.returncode}: see above")
        return [Path(line) for line in said.stdout.splitlines()]

    def _run(self, verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*self.command, verb, *self.flags, *arguments]
        return subprocess.run(command, cwd=self.root, text=True, stdout=subprocess.PIPE)


def commits() -> dict[str, str]:
    """The commits of fields.toml."""
    return {
        name: pin["name"] for pin in fields.TABLE["pins"] for name in (pin["name"], *pin["also"])
    }


def _head(root: Path) -> str:
    """The commit of a checkout; "" where it is none. Raises QolaError."""
    if not root.is_dir():
        raise QolaError(f"--aiter-root: {root} is no folder; name a checkout of AITER")
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    said = subprocess.run(command, text=True, capture_output=True)
    if said.returncode:
        raise QolaError(f"--aiter-root: {' '.join(command)} failed: {said.stderr.strip()}")
    return said.stdout.strip()


def _pin(manifest: qola.Manifest, aiter_root: Path | None, known: Mapping[str, str]) -> str:
    """The pin of the manifest's commit, else of the checkout's."""
    head = _head(aiter_root) if aiter_root else ""
    pin = qola.pin_of(manifest.aiter_commit or head, known, f"{manifest.path}: [qola]")
    if head and not head.startswith(manifest.aiter_commit.rstrip(".…").lower()):
        raise QolaError(
            f"--aiter-root: {aiter_root} is at {head}, and aiter_commit is "
            f"{manifest.aiter_commit}: check that out there, or leave the option out"
        )
    return pin


def _copy_configs(aiter_root: Path | None, folder: Path) -> None:
    """AITER's tables of tuned parameters, which its attention does not read."""
    folder.mkdir()
    source = aiter_root / "aiter/configs" if aiter_root else None
    if source is None or not source.is_dir():
        return
    for table in sorted(source.glob("*.csv")):
        shutil.copyfile(table, folder / table.name)
    if (source / "model_configs").is_dir():
        shutil.copytree(source / "model_configs", folder / "model_configs")


def _copy_headers(bazel: Bazel, pin: str, folder: Path) -> None:
    """QoLA's headers of the namespace, AITER's of the pin, and those that they include."""
    for path in bazel.outputs(*_header_targets(pin)):
        (folder / path.name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(bazel.root / path, folder / path.name)
    declarations = bazel.root / _HEADERS
    for path in sorted(declarations.rglob("*.hpp")):
        target = folder / path.relative_to(declarations)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _header_targets(pin: str) -> list[str]:
    return [f"//aiter/compat:{kind}_headers_{pin}" for kind in ("qola", "mha")]


def _library(
    bazel: Bazel, manifest: qola.Manifest, module: qola.Module, pin: str, tree: Path, output: Path
) -> dict[str, Any]:
    """Builds a library into the tree; its entry of manifest.json."""
    name = f"{manifest.namespace}_{module.name}"
    target = f"//aiter/compat:{pin}/qola_{module.name}.so"
    start = time.monotonic()
    status = bazel.build(target, *_header_targets(pin))
    if not status:
        (made,) = bazel.outputs(target)
        shutil.copyfile(bazel.root / made, tree / "lib" / f"{name}.so")
        (tree / "lib" / f"{name}.so").chmod(0o755)
    return {
        "md_name": name,
        "success": not status,
        "error": f"bazel build {target} failed with exit status {status}" if status else "",
        "so_path": None if status else str(output / "lib" / f"{name}.so"),
        "duration_s": round(time.monotonic() - start, 2),
    }


def build(
    options: argparse.Namespace, facts: Facts, root: Path, environment: Mapping[str, str]
) -> dict[str, Any]:
    """The contents of manifest.json; the output tree is written where all libraries were built.

    Raises QolaError, TreeError or VariantSetError, and then nothing is written.
    """
    try:
        text = options.manifest.read_text("utf-8")
    except OSError as error:
        raise QolaError(f"--manifest: {options.manifest}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise QolaError(f"{options.manifest}: not UTF-8: {error}; write it as UTF-8") from None
    manifest = qola.read(
        text, str(options.manifest), mode=options.mode or "", groups=options.group or ()
    )
    pin = _pin(manifest, options.aiter_root, facts.commits)
    archs = qola.archs_of(
        manifest, options.arch or (), environment.get("GPU_ARCHS", ""), facts.archs
    )
    qola.require_rocm(manifest, facts.rocm_majors)
    if manifest.variant_set:
        chosen = parse_variant_set(manifest.variant_set, manifest.path, facts.pool.known_values)
        select_instances(chosen, facts.pool.candidates)  # or says here why it cannot
    for line in manifest.reported:
        print(f"qola: {line}", file=sys.stderr)

    with replaced(options.output_dir) as tree:
        flags = [
            f"--//aiter:namespace={manifest.namespace}",
            f"--//kernels:archs={','.join(archs)}",
            f"--//kernels:providers={','.join(manifest.providers)}",
            *options.bazel_flag,
            *(["--subcommands", "--verbose_failures"] if options.verbose else []),
        ]
        if manifest.variant_set:
            own = tree.parent / f"{_SET}.toml"
            own.write_text(manifest.variant_set, "utf-8")
            flags += [f"--repo_env=AITER_ATTN_VARIANT_SET={own}", f"--//kernels:variants={_SET}"]
        bazel = Bazel(root, flags, options.bazel)
        (tree / "lib").mkdir()
        modules = [
            _library(bazel, manifest, module, pin, tree, options.output_dir)
            for module in manifest.modules
        ]
        failed = sum(not module["success"] for module in modules)
        record = {
            "generated_at": datetime.datetime.now(datetime.timezone.utc).isoformat(),
            "aiter_root": str(options.aiter_root or ""),
            "manifest_src": str(options.manifest),
            "gpu_archs": ";".join(archs),
            "modules": modules,
            "summary": {"total": len(modules), "success": len(modules) - failed, "failed": failed},
        }
        if failed:
            raise _NotBuilt(record)
        _copy_headers(bazel, pin, tree / "include")
        _copy_configs(options.aiter_root, tree / "configs")
        (tree / "manifest.json").write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    return record


class _NotBuilt(Exception):
    """A library was not built: the output tree stays as it was. Its argument is the record."""


def parse(arguments: Sequence[str], here: Path) -> argparse.Namespace:
    """The options; paths are from `here`, where the user is."""

    def path(text: str) -> Path:
        return Path(os.path.abspath(here / text))

    parser = argparse.ArgumentParser(prog="qola", description=__doc__)
    command = parser.add_subparsers(dest="command", required=True).add_parser("build")
    add = command.add_argument
    add("--manifest", "-m", type=path, required=True, help="QoLA's manifest, a TOML file")
    add("--aiter-root", "-a", type=path, help="a checkout of AITER: configs/ is of it")
    add("--output-dir", "-o", type=path, required=True, help="folder of the output tree")
    add("--arch", action="append", help="may be repeated; `;` parts several")
    add("--mode", choices=qola.MODES, help="of modules that have none of their own")
    add("--group", action="append", help="of [[modules]]; may be repeated")
    add("--verbose", "-v", action="store_true", help="Bazel says each command that it runs")
    add("--bazel-flag", action="append", help="of the builds; default: --config=cache")
    options = parser.parse_args(arguments)
    options.bazel_flag = options.bazel_flag or ["--config=cache"]
    options.bazel = ("./bazelw",)
    return options


def read_facts(pool: Path, archs: Path, hip_versions: Path) -> Facts:
    found = re.search(r"kHipVersions\[\] = \{([\d, ]+)\}", hip_versions.read_text("utf-8"))
    if not found:
        raise ValueError(f"{hip_versions}: no kHipVersions")
    majors = found[1].split(", ")
    return Facts(
        commits(), sorted(read_archs(archs)), majors, RecordedPool(pool.read_text("utf-8"))
    )


def main(arguments: Sequence[str], facts: Facts, environment: Mapping[str, str]) -> int:
    """The exit status, as QoLA's: 1 where a library was not built."""
    root = environment.get("BUILD_WORKSPACE_DIRECTORY")
    if not root:
        print("qola: run it through Bazel: ./bazelw run //:qola -- build ...", file=sys.stderr)
        return 2
    options = parse(arguments, Path(environment.get("BUILD_WORKING_DIRECTORY", root)))
    try:
        record = build(options, facts, Path(root), environment)
    except _NotBuilt as error:
        (record,) = error.args
    except (QolaError, TreeError, VariantSetError) as error:
        print(f"qola: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("qola: interrupted; nothing is written", file=sys.stderr)
        return 130
    summary = record["summary"]
    print(
        f"Build complete: {summary['success']}/{summary['total']} succeeded, "
        f"{summary['failed']} failed."
    )
    for module in record["modules"]:
        if not module["success"]:
            print(f"  FAILED: {module['md_name']}: {module['error']}")
    return 1 if summary["failed"] else 0


if __name__ == "__main__":
    # The files that Bazel names go before the user's arguments.
    _FILES = [Path(path) for path in sys.argv[1:4]]
    sys.exit(main(sys.argv[4:], read_facts(*_FILES), os.environ))
