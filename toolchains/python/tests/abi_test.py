# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The interpreter of a test is the chosen one, and takes nothing from the host."""

import os
import pathlib
import subprocess
import sys
import sysconfig

EXPECTED = os.environ["EXPECTED_ABI"]


def runfiles() -> pathlib.Path:
    return pathlib.Path(os.environ["RUNFILES_DIR"])


def test_the_abi_is_the_chosen_one():
    assert f"cp{sys.version_info.major}{sys.version_info.minor}" == EXPECTED
    assert sysconfig.get_config_var("EXT_SUFFIX") == f".cpython-{EXPECTED[2:]}-x86_64-linux-gnu.so"


def test_every_module_folder_is_in_the_build():
    roots = (str(runfiles()), sys.prefix)
    assert sys.path
    assert [p for p in sys.path if not p.startswith(roots)] == []
    assert not sys.prefix.startswith(("/usr", "/opt"))


def test_the_libraries_are_the_trees_own():
    # The loader, libc and what extension modules load. Data files of the locale are no code.
    import bz2, ctypes, hashlib, lzma, sqlite3, ssl, zlib  # noqa: E401, F401, I001

    maps = pathlib.Path("/proc/self/maps").read_text()
    loaded = {line.split(maxsplit=5)[-1] for line in maps.splitlines()}
    foreign = {f for f in loaded if f.startswith("/") and ".so" in f and "python_3_" not in f}
    assert foreign == set()


def test_a_child_runs_the_same_interpreter():
    code = "import sys; print(sys.version, sys.prefix)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout.strip() == f"{sys.version} {sys.prefix}"


def test_the_users_site_packages_are_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    site = tmp_path / f".local/lib/python3.{sys.version_info.minor}/site-packages"
    site.mkdir(parents=True)
    (site / "intruder.py").write_text("")
    out = subprocess.run([sys.executable, "-c", "import intruder"], capture_output=True, text=True)
    assert "No module named 'intruder'" in out.stderr


def test_modules_are_compiled_beforehand():
    import json

    import numpy

    for module in (json, numpy):
        assert pathlib.Path(module.__cached__).exists()


def test_numpy_is_the_abis_own():
    import numpy

    assert numpy.add(1, 1) == 2
    core = pathlib.Path(numpy.__file__).parent / "_core"
    assert list(core.glob(f"_multiarray_umath.cpython-{EXPECTED[2:]}-*.so"))


def test_msgpack_is_the_compiled_one():
    import msgpack
    import msgpack._cmsgpack

    assert msgpack.unpackb(msgpack.packb({"a": [1, b"x"]})) == {"a": [1, b"x"]}
    assert msgpack.Unpacker is msgpack._cmsgpack.Unpacker


def test_pyelftools_reads_a_program():
    from elftools.elf.elffile import ELFFile

    program = pathlib.Path(sys.prefix, f"bin/python{sys.version_info.major}.{sys.version_info[1]}")
    with program.open("rb") as f:
        assert ELFFile(f)["e_machine"] == "EM_X86_64"
