# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A py_extension, imported by the Python that it was compiled for."""

import importlib.machinery
import platform
from pathlib import Path

import compiled  # type: ignore[import-not-found]


def test_it_is_compiled_for_this_python():
    assert compiled.python == platform.python_version()


def test_its_file_has_the_name_of_this_abi_and_lies_where_the_module_name_says():
    path = Path(compiled.__file__)
    assert path.name == "compiled" + importlib.machinery.EXTENSION_SUFFIXES[0]
    assert path.parent.name == "folder"


def test_sources_macros_and_libraries_are_in_it():
    assert compiled.number() == 42
