# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""What is drawn, forgotten and compared; execution logs as Bazel writes them."""

from __future__ import annotations

import dataclasses
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
        place.touch()
    verify_cache.forget(tmp_path, spawns[:1])
    assert [p.name for p in (tmp_path / "ac").glob("*/*")] == ["bb" * 32]
    with pytest.raises(verify_cache.Trouble, match="//a:b"):
        verify_cache.forget(tmp_path, spawns[:1])


def test_differences(spawns: list[execution_log.Spawn]) -> None:
    sample = spawns[:2]
    same = [dataclasses.replace(s, cached=False) for s in sample]
    assert verify_cache.differences(sample, same) == []
    other = dataclasses.replace(same[1], outputs=(same[1].outputs[0], ("out/c", "99" * 32)))
    (line,) = verify_cache.differences(sample, [same[0], other])
    for part in ("Pack //a:c", "out/c", "03" * 32, "99" * 32, "bb" * 32):
        assert part in line
    fewer = dataclasses.replace(same[0], outputs=())
    assert "missing when made here" in verify_cache.differences(sample[:1], [fewer])[0]
    # What came from a cache again was not verified.
    assert "was not run again" in verify_cache.differences(sample[:1], sample[:1])[0]
