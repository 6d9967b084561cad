# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The offline module registry."""

from __future__ import annotations

import json
import pathlib
import re

import pytest

from toolchains.bazel import registry
from toolchains.locks.errors import LocksError

FOLDER = pathlib.Path(registry.__file__).parent
BASE = "/cache/bundle/usr/share/bazel"
OFFLINE = """
extra_jars = ["one"]

[module.rules_a]
version = "1.2"
path = "rules/a"
older = ["1.0"]

[module.skylib]
version = "9.9"
path = "tools/skylib"

[stub]
buildozer = ["7.1.2"]
zlib = ["1", "2"]
"""
RULES_A = """module(
    name = "rules_a",
    # bazel-dep style comment
    version = "0.0.0",
    compatibility_level = 4,
)

bazel_dep(name = "skylib", version = "1.0")
bazel_dep(
    name = "elsewhere",
    version = "3",
)
"""
MODULES = {"rules/a": RULES_A, "tools/skylib": 'module(name = "skylib", version = "9.9")\n'}


@pytest.fixture
def files() -> dict[str, str]:
    offline = registry.parse_offline(OFFLINE, "offline.toml")
    return registry.files(offline, BASE, MODULES.__getitem__)


def test_registry_points_into_the_bundle(files: dict[str, str]) -> None:
    assert json.loads(files["registry/bazel_registry.json"]) == {"module_base_path": BASE}
    source = json.loads(files["registry/modules/rules_a/1.2/source.json"])
    assert source == {"type": "local_path", "path": "rules/a"}


def test_versions_are_those_that_there_are(files: dict[str, str]) -> None:
    text = files["registry/modules/rules_a/1.2/MODULE.bazel"]
    assert 'name = "rules_a",' in text
    assert 'version = "1.2",' in text
    assert '"skylib", version = "9.9"' in text
    assert 'name = "elsewhere", version = "3"' in text


def test_older_versions_have_the_compatibility_level(files: dict[str, str]) -> None:
    text = files["registry/modules/rules_a/1.0/MODULE.bazel"]
    assert text == 'module(name = "rules_a", version = "1.0", compatibility_level = 4)\n'


def test_stubs(files: dict[str, str]) -> None:
    for version in ("1", "2"):
        assert f"registry/modules/zlib/{version}/MODULE.bazel" in files
    assert files["usr/share/bazel/stubs/zlib/MODULE.bazel"] == 'module(name = "zlib")\n'
    extension = files["usr/share/bazel/stubs/buildozer/buildozer_binary.bzl"]
    assert "buildozer_binary = module_extension(" in extension


@pytest.mark.parametrize("text", ["extra_jars = [", "", "extra_jars = []\nmodule = 1\n[stub]\n"])
def test_damaged_file_is_one_error(text: str) -> None:
    with pytest.raises(LocksError, match=r"offline\.toml"):
        registry.parse_offline(text, "offline.toml")


def test_the_committed_file_covers_module_bazel() -> None:
    offline = registry.parse_offline((FOLDER / "offline.toml").read_text(), "offline.toml")
    module = (FOLDER.parent.parent / "MODULE.bazel").read_text()
    asked = re.findall(r'bazel_dep\(name = "(\w+)", version = "([^"]+)"', module)
    assert asked
    for name, version in asked:
        known = offline.modules[name]
        assert version in (known.version, *known.older), f"{name} {version}"
