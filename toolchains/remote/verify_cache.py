# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Makes a drawn sample of a cache's results again and compares.

    ./bazelw run //toolchains/remote:verify_cache -- --remote_cache=URL [TARGET...]

A cache cannot tell whether a result is what its action gives: whoever may write to it may have
written anything. This has Bazel take all results of the targets from the cache, forgets some of
them, and has those actions run here, on the same inputs. A result that differs, or an action that
fails, keeps those that read it from having these inputs: the cache's result is put back, and they
run in another build. Exit status 1: a result differs, or the sample could not be made.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from toolchains.locks.web import hidden
from toolchains.remote.execution_log import Spawn, read

URL = flags.DEFINE_string("remote_cache", None, "URL of the cache, as for Bazel", required=True)
SAMPLE = flags.DEFINE_integer("sample", 20, "how many results are made again", lower_bound=1)
SEED = flags.DEFINE_string("seed", None, "draws the same sample again; default: another each time")
MNEMONIC = flags.DEFINE_string("mnemonic", None, "only actions of this kind, like HipCodeObject")
OUTPUT = flags.DEFINE_string(
    "output_user_root",
    None,
    "of the Bazel that does it, kept for a next time; default: a new one, deleted at the end",
)
BAZEL_FLAGS = flags.DEFINE_multi_string(
    "bazel_flag", [], "of both builds, like --//kernels:variants=smoke"
)

DEFAULT_TARGET = "//python:attn_wheel"


class Trouble(Exception):
    """The reason why the cache cannot be verified, for the user."""


@dataclasses.dataclass(frozen=True)
class Build:
    """Actions that ran or came from a cache; `trouble`: why that is not all of it."""

    spawns: list[Spawn]
    trouble: Trouble | None = None


@dataclasses.dataclass(frozen=True)
class Bazel:
    """A Bazel of its own: the caller's, which runs this program, is left alone."""

    workspace: Path
    scratch: Path
    output_user_root: Path

    @property
    def disk_cache(self) -> Path:
        return self.scratch / "disk"

    def run(self, command: str, *arguments: str, options: Sequence[str] = ()) -> str:
        """Returns what Bazel said. Raises Trouble with the end of that where it fails."""
        root = f"--output_user_root={self.output_user_root}"
        got = subprocess.run(
            ["./bazelw", root, "--max_idle_secs=60", command, *options, *arguments],
            cwd=self.workspace,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if got.returncode:
            raise Trouble(
                f"bazel {command} failed ({got.returncode}):\n{hidden(got.stdout[-3000:])}"
            )
        return got.stdout

    def build(self, name: str, targets: Sequence[str], *options: str) -> Build:
        """Builds as much as can be, without earlier outputs, with a disk cache of its own."""
        log = self.scratch / name
        own = [
            # One action that fails is no reason to leave the others out.
            "--keep_going",
            f"--disk_cache={self.disk_cache}",
            f"--execution_log_json_file={log}",
            # bazel-bin and its like stay those of the caller's builds.
            "--experimental_convenience_symlinks=ignore",
            # With the files gone, nothing is taken for built. `clean` would forget the analysis.
            "--experimental_remote_cache_ttl=0s",
        ]
        outputs = Path(self.run("info", "output_path").split()[-1])
        for folder in outputs.glob("[!_]*/"):
            subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
            shutil.rmtree(folder)
        log.unlink(missing_ok=True)
        trouble = None
        try:
            self.run("build", "--", *targets, options=[*BAZEL_FLAGS.value, *own, *options])
        except Trouble as e:
            trouble = e
        spawns = read(log) if log.exists() else []
        if trouble and not spawns:
            raise trouble
        return Build(spawns, trouble)


def draw(spawns: Sequence[Spawn], mnemonic: str | None, count: int, seed: str) -> list[Spawn]:
    """Returns a sample of the results that are the cache's. Raises Trouble if there are none."""
    hits = {s.action: s for s in spawns if s.cached and s.action}
    if not hits:
        raise Trouble("the cache has no result of these targets: there is nothing to verify")
    fitting = [s for _, s in sorted(hits.items()) if mnemonic in (None, s.mnemonic)]
    if not fitting:
        known = ", ".join(sorted({s.mnemonic for s in hits.values()}))
        raise Trouble(f"--mnemonic={mnemonic}: no result is of that kind; there are {known}")
    return random.Random(seed).sample(fitting, min(count, len(fitting)))  # noqa: S311


def forget(disk_cache: Path, spawns: Sequence[Spawn]) -> dict[Path, bytes]:
    """Deletes results from a disk cache and returns them. Raises Trouble for one that it lacks."""
    forgotten = {}
    for spawn in spawns:
        place = disk_cache / "ac" / spawn.action[:2] / spawn.action
        if not place.exists():
            raise Trouble(f"{spawn.label}: the result of {spawn.action} was not kept by Bazel")
        forgotten[place] = place.read_bytes()
        place.unlink()
    return forgotten


def differences(spawn: Spawn, again: Spawn) -> list[str]:
    """Returns a line per output that is another when made here."""
    here = dict(again.outputs)
    return [
        f"{spawn.mnemonic} {spawn.label}: {path} is {digest} in the cache, "
        f"{here.get(path, 'missing')} when made here (action {spawn.action})"
        for path, digest in spawn.outputs
        if here.get(path) != digest
    ]


def make_again(bazel: Bazel, targets: Sequence[str], sample: Sequence[Spawn]) -> list[str]:
    """Has the sample's actions run here; returns what was found, a line each."""
    found: list[str] = []
    left = list(sample)
    while left:
        forgotten = forget(bazel.disk_cache, left)
        made = bazel.build("made.json", targets, "--remote_cache=")
        ran = {s.action: s for s in made.spawns if not s.cached}
        for spawn in left:
            if spawn.action in ran:
                found += differences(spawn, ran[spawn.action])
        not_run = [s for s in left if s.action not in ran]
        if len(not_run) == len(left):
            found += [f"{s.mnemonic} {s.label}: was not run again" for s in left]
            if made.trouble:
                found.append(str(made.trouble))
            break
        # The others have, the next time, what they had from the cache.
        for place, result in forgotten.items():
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(result)
        left = not_run
    return found


def verify(bazel: Bazel, targets: Sequence[str], seed: str) -> int:
    """Prints what was found. Returns the exit status."""
    cached = bazel.build(
        "cached.json",
        targets,
        f"--remote_cache={URL.value}",
        "--noremote_upload_local_results",
        # Inputs of what is run again.
        "--remote_download_outputs=all",
    )
    sample = draw(cached.spawns, MNEMONIC.value, SAMPLE.value, seed)
    found = make_again(bazel, targets, sample)
    hits = sum(s.cached for s in cached.spawns)
    print(f"verify_cache: {hits} of {len(cached.spawns)} results are from the cache; --seed={seed}")
    for line in found:
        print(f"verify_cache: DIFFERENT: {line}")
    print(f"verify_cache: {len(sample)} made again, {len(found)} differences")
    if cached.trouble:
        print(f"verify_cache: with what the cache has, {cached.trouble}")
    return 1 if found or cached.trouble else 0


def main(argv: Sequence[str]) -> int:
    workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if not workspace:
        raise app.UsageError("run it through Bazel: ./bazelw run //toolchains/remote:verify_cache")
    scratch = Path(tempfile.mkdtemp(prefix="verify-cache-"))
    bazel = Bazel(Path(workspace), scratch, Path(OUTPUT.value or scratch / "output").absolute())
    try:
        return verify(bazel, argv[1:] or [DEFAULT_TARGET], SEED.value or secrets.token_hex(4))
    except Trouble as e:
        print(f"verify_cache: error: {e}", file=sys.stderr)
        return 1
    finally:
        with contextlib.suppress(Trouble):
            bazel.run("shutdown")
        # Bazel makes its trees read-only.
        subprocess.run(["chmod", "-R", "u+w", str(scratch)], check=False)
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    app.run(main)
