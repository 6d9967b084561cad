# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Results that are drawn, forgotten and compared; execution logs as Bazel writes them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest

from toolchains.remote import execution_log, verify_cache

LOG = [
    {
        "mnemonic": "Compile",
        "targetLabel": "//a:b",
        "digest": {"hash": "aa" * 32, "sizeBytes": "148"},
        "actualOutputs": [{"path": "out/a", "digest": {"hash": "01" * 32}}],
        "cacheHit": True,
        "runner": "remote cache hit",
    },
    {
        "mnemonic": "Pack",
        "targetLabel": "//a:c",
        "digest": {"hash": "bb" * 32},
        "actualOutputs": [
            {"path": "out/b", "digest": {"hash": "02" * 32}},
            {"path": "out/c", "digest": {"hash": "03" * 32}},
        ],
        "cacheHit": True,
    },
    {"mnemonic": "Local", "runner": "linux-sandbox"},
]


@pytest.fixture
def spawns(tmp_path: Path) -> list[execution_log.Spawn]:
    path = tmp_path / "log"
    # As Bazel does: objects one behind another, each over several lines.
    path.write_text("\n".join(json.dumps(entry, indent=2) for entry in LOG) + "\n")
    return execution_log.read(path)


def test_execution_logs(spawns: list[execution_log.Spawn], tmp_path: Path) -> None:
    compiled, packed, local = spawns
    assert compiled.action == "aa" * 32 and compiled.cached
    assert packed.outputs == (("out/b", "02" * 32), ("out/c", "03" * 32))
    assert local == execution_log.Spawn("Local", "", "", (), False, "linux-sandbox")
    (tmp_path / "empty").write_text("")
    assert execution_log.read(tmp_path / "empty") == []
    (tmp_path / "cut").write_text('{"mnemonic": "Compile",')
    with pytest.raises(ValueError):
        execution_log.read(tmp_path / "cut")


def test_a_sample_is_of_hits_and_the_same_for_a_seed(spawns: list[execution_log.Spawn]) -> None:
    assert {s.mnemonic for s in verify_cache.draw(spawns, None, 9, "x")} == {"Compile", "Pack"}
    assert [s.mnemonic for s in verify_cache.draw(spawns, "Pack", 9, "x")] == ["Pack"]
    drawn = {verify_cache.draw(spawns, None, 1, str(seed))[0].mnemonic for seed in range(20)}
    assert drawn == {"Compile", "Pack"}, "another seed draws another sample"
    assert verify_cache.draw(spawns, None, 1, "7") == verify_cache.draw(spawns[::-1], None, 1, "7")


def test_what_cannot_be_drawn(spawns: list[execution_log.Spawn]) -> None:
    with pytest.raises(verify_cache.Trouble, match=r"--mnemonic=Link.*there are Compile, Pack"):
        verify_cache.draw(spawns, "Link", 1, "x")
    with pytest.raises(verify_cache.Trouble, match="nothing to verify"):
        verify_cache.draw(spawns[2:], None, 1, "x")


def test_forgetting(spawns: list[execution_log.Spawn], tmp_path: Path) -> None:
    for spawn in spawns[:2]:
        place = tmp_path / "ac" / spawn.action[:2] / spawn.action
        place.parent.mkdir(parents=True)
        place.write_bytes(spawn.action.encode())
    (forgotten,) = verify_cache.forget(tmp_path, spawns[:1]).items()
    assert forgotten == (tmp_path / "ac/aa" / ("aa" * 32), b"aa" * 32)
    assert [p.name for p in (tmp_path / "ac").glob("*/*")] == ["bb" * 32]
    with pytest.raises(verify_cache.Trouble, match="//a:b"):
        verify_cache.forget(tmp_path, spawns[:1])


def test_differences(spawns: list[execution_log.Spawn]) -> None:
    for spawn in spawns[:2]:
        same = dataclasses.replace(spawn, cached=False)
        assert verify_cache.differences(spawn, same) == []
    other = dataclasses.replace(spawns[1], outputs=(spawns[1].outputs[0], ("out/c", "99" * 32)))
    (line,) = verify_cache.differences(spawns[1], other)
    for part in ("Pack //a:c", "out/c", "03" * 32, "99" * 32, "bb" * 32):
        assert part in line
    none = dataclasses.replace(spawns[0], outputs=())
    assert "missing when made here" in verify_cache.differences(spawns[0], none)[0]


class Chain:
    """Stands for a Bazel that builds //:first -> //:second -> //:third, and //:alone.

    The digest of a result is that of the action, unless `disk_cache` says otherwise. `failing` are
    the labels whose actions do not succeed here.
    """

    def __init__(self, folder: Path) -> None:
        self.disk_cache = folder
        self.failing: set[str] = set()
        self.builds = 0

    def place(self, action: str) -> Path:
        return self.disk_cache / "ac" / action[:2] / action

    def build(self, *_: object) -> verify_cache.Build:
        self.builds += 1
        spawns: list[execution_log.Spawn] = []
        failed = False
        for labels in (("first", "second", "third"), ("alone",)):
            inputs = ""
            for label in labels:
                action = hashlib.sha256(f"{label} of {inputs}".encode()).hexdigest()
                place = self.place(action)
                cached = place.exists()
                fails = not cached and label in self.failing
                digest = place.read_text() if cached else action
                outputs = () if fails else (("out", digest),)
                spawns.append(execution_log.Spawn("M", f"//:{label}", action, outputs, cached))
                if fails:
                    failed = True
                    break
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(digest)
                inputs = digest
        return verify_cache.Build(spawns, verify_cache.Trouble("it fails") if failed else None)

    def forge(self, label: str) -> None:
        """Has the cache say something else of an action, and of what follows the truth."""
        (spawn,) = (s for s in self.build().spawns if s.label == f"//:{label}")
        self.place(spawn.action).write_text("f" * 64)

    def check(self) -> list[str]:
        """The labels of what is found, when the whole cache is made again."""
        sample = self.build().spawns
        self.builds = 0
        found = verify_cache.make_again(self, ["//..."], sample)  # type: ignore[arg-type]
        return [line.split(":", 2)[1] for line in found]


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    made = Chain(tmp_path)
    made.build()
    return made


def test_an_honest_cache_is_made_again_in_one_build(chain: Chain) -> None:
    assert chain.check() == []
    assert chain.builds == 1


def test_a_result_that_differs_hides_no_other(chain: Chain) -> None:
    # Those after a forged one are made again with the inputs that they had.
    for label in ("first", "second", "alone"):
        chain.forge(label)
    chain.build()
    assert sorted(chain.check()) == ["alone", "first", "second"]
    assert chain.builds == 3


def test_an_action_that_fails_hides_no_other(chain: Chain) -> None:
    chain.forge("third")
    chain.failing = {"first", "alone"}
    assert sorted(chain.check()) == ["alone", "first", "third"]


def test_what_cannot_be_made_again_is_no_success(
    spawns: list[execution_log.Spawn], chain: Chain
) -> None:
    unknown = dataclasses.replace(spawns[0], label="//:gone")
    chain.place(unknown.action).parent.mkdir(exist_ok=True)
    chain.place(unknown.action).write_text("x")
    found = verify_cache.make_again(chain, [], [unknown])  # type: ignore[arg-type]
    assert found == ["Compile //:gone: was not run again"]
