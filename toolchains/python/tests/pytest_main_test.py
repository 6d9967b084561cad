# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""pytest_main.py as Bazel calls it: failures, reports, shards, temporary files."""

import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

MAIN = pathlib.Path("toolchains/python/pytest_main.py").absolute()
BAZEL = ("XML_OUTPUT_FILE", "TEST_TMPDIR", "TESTBRIDGE_TEST_ONLY", "TEST_TOTAL_SHARDS")

PASSING = "def test_a(): pass\ndef test_b(): pass\ndef test_c(): pass\n"


@pytest.fixture
def run(tmp_path):
    def run_main(source: str, **environ: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "sample_test.py").write_text(source)
        clean = {k: v for k, v in os.environ.items() if k not in BAZEL}
        return subprocess.run(
            [sys.executable, str(MAIN), "sample_test.py"],
            cwd=tmp_path,
            env=clean | environ,
            capture_output=True,
            text=True,
        )

    return run_main


def test_passes(run):
    assert run(PASSING).returncode == 0


def test_a_failing_test_fails(run):
    assert run(PASSING + "def test_d(): assert 0\n").returncode == 1


def test_no_test_collected_fails(run):
    got = run("def check_a(): pass\n")
    assert got.returncode != 0
    assert "no test was collected from sample_test.py" in got.stderr


def test_a_filter_chooses(run):
    assert "1 passed, 2 deselected" in run(PASSING, TESTBRIDGE_TEST_ONLY="test_b").stdout


def test_a_filter_that_matches_nothing_passes(run):
    assert run(PASSING, TESTBRIDGE_TEST_ONLY="test_z").returncode == 0


def test_the_report_names_the_tests(run, tmp_path):
    report = tmp_path / "test.xml"
    run(PASSING, XML_OUTPUT_FILE=str(report))
    names = [case.get("name") for case in ElementTree.parse(report).iter("testcase")]
    assert names == ["test_a", "test_b", "test_c"]


def test_shards_share_the_tests(run, tmp_path):
    passed = []
    for index in range(2):
        status = tmp_path / f"status{index}"
        got = run(
            PASSING,
            TEST_TOTAL_SHARDS="2",
            TEST_SHARD_INDEX=str(index),
            TEST_SHARD_STATUS_FILE=str(status),
        )
        assert got.returncode == 0
        assert status.exists()
        passed.append(got.stdout.splitlines()[-1].split("==")[1:])
    assert ["2 passed" in str(p) for p in passed] == [True, False]
    assert ["1 passed" in str(p) for p in passed] == [False, True]


@pytest.mark.parametrize("passes", [True, False])
def test_temporary_files_stay_where_a_test_has_failed(run, tmp_path, passes):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    run(
        f"def test_a(tmp_path):\n (tmp_path / 'made').touch()\n assert {passes}\n",
        TEST_TMPDIR=str(scratch),
    )
    assert len(list(scratch.rglob("made"))) == (not passes)
