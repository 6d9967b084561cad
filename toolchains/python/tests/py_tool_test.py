# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A py_tool runs on the locked interpreter and sees its own modules only."""

import json
import pathlib

from toolchains.locks import constants

REPORT = json.loads(pathlib.Path("toolchains/python/tests/report.json").read_text("utf-8"))


def test_the_interpreter_is_the_locked_one():
    major, minor = REPORT["version"]
    abis = constants.read(pathlib.Path("toolchains/versions/abis.bzl"))
    assert abis["TOOLS_ABI"] == f"cp{major}{minor}"
    assert f"python_{major}_{minor}" in REPORT["prefix"]
    assert REPORT["flags"] == {"safe_path": True, "no_site": 1}


def test_modules_are_found_by_full_name():
    assert REPORT["module"] == "toolchains.python.tests.tool_module"


def test_locked_distributions_are_found():
    assert REPORT["libraries"] == ["elftools", "msgpack"]


def test_arguments_arrive():
    assert REPORT["arguments"] == ["an argument"]


def test_no_module_folder_is_the_hosts():
    ours = (REPORT["folder"], REPORT["prefix"])
    assert [p for p in REPORT["path"] if not p.startswith(ours)] == []
