# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Input of scale.py from its surroundings and from Bazel; the rest is measured, not tested."""

from __future__ import annotations

import os
from pathlib import Path

from absl import flags

from tests.bench import scale
from toolchains.pages.tests.chromium import Browser
from toolchains.pages.tests.looking import browser as browser  # a fixture
from toolchains.pages.tests.looking import look

SUMMARY = """491 total actions.

Mnemonics:
  Symlink: 1
  CodeObjectDescribe: 96
  HipCodeObject: 98
  CppArchive: 97

Configurations:
  k8-opt: 491

Execution Platforms:
  @@platforms//host:host: 491
"""


def test_the_tree_is_the_one_that_bazel_runs_it_in() -> None:
    flags.FLAGS(["scale"])
    assert flags.FLAGS.tree == "/the/checkout"


def test_full_is_the_trees_own_where_it_has_one(tmp_path: Path) -> None:
    variants = tmp_path / "kernels/variants"
    variants.mkdir(parents=True)
    assert scale.variant_set_of(tmp_path, "50") == "core"
    assert scale.variant_set_of(tmp_path, "5000") == "scale"
    assert (variants / "scale.toml").read_text() == '[[variants]]\ndirection = "bwd"\n'
    assert scale.variant_set_of(tmp_path, "full") == "scale"
    assert (variants / "scale.toml").read_text() == "[[variants]]\n"
    (variants / "full.toml").touch()
    assert {scale.variant_set_of(tmp_path, name) for name in ("20000", "full", "pool")} == {"full"}


def test_a_group_is_one_target(tmp_path: Path) -> None:
    tree = scale.Tree.__new__(scale.Tree)  # of no source tree
    tree.root = tmp_path
    assert tree.group(["//a:b", "@c//d"]) == (["//a:b"], ["//scale:pool"])
    written = (tmp_path / "scale/BUILD.bazel").read_text()
    assert written == "filegroup(name = 'pool', srcs = ['//a:b', '@c//d'])\n"


def test_counts() -> None:
    assert scale.counts(SUMMARY) == (491, 98)


def test_compiles_that_were_looked_up() -> None:
    lines = [
        '{"started": {}}',
        '{"action": {"type": "HipCodeObject"}}',
        '{"action": {"type": "HipCompileGroup", "success": false}}',
        '{"action": {"type": "HipCodeObject", "success": true}}',
        '{"action": {"type": "CppCompile"}}',
    ]
    assert scale.refused(lines) == 2


def test_the_page_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    small = scale.Measured("50", 55, 194, 20.1, 16.8, 0.6, 82, 640.0, compiles=83, lookup=0.13)
    large = scale.Measured("full", 37000, 86000, 80.0, 150.0, 0.9, 550, 2500.0, 38000, 0.02)
    text = scale.page([large, small], Path(os.environ["CHART_JS"]))
    (tmp_path / "scale.html").write_text(text)
    look(browser, tmp_path / "scale.html", plots=4)
    first = "document.querySelector('table.sorted').tBodies[0].rows[0].cells[0].textContent"
    assert browser.evaluate(first) == "55"
