# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The machine's Python and its headers: which are taken, which are refused, and what is copied."""

from __future__ import annotations

import json
import sys
import sysconfig
from pathlib import Path

import pytest

from toolchains.python import host_python

SHORT = f"{sys.version_info.major}.{sys.version_info.minor}"
ABI = "cp" + SHORT.replace(".", "")


def headers(
    folder: Path, version: str = "3.12.1", config: str = "", level: str | None = None
) -> Path:
    """A folder of headers, of which the parts that are read are real ones' in form."""
    major, minor, _ = version.split(".")
    folder.mkdir(parents=True)
    (folder / "Python.h").write_text('#include "patchlevel.h"\n')
    (folder / "patchlevel.h").write_text(
        f"#define PY_MAJOR_VERSION        {major}\n#define PY_MINOR_VERSION        {minor}\n"
        f'#define PY_VERSION              "{version}"\n'
        if level is None
        else level
    )
    (folder / "pyconfig.h").write_text(f"/* #undef Py_DEBUG */\n#define HAVE_ALARM 1\n{config}\n")
    (folder / "internal").mkdir()
    (folder / "internal/pycore.h").write_text("// inner\n")
    (folder / "notes.txt").write_text("no header\n")
    return folder


def described(folder: Path | str) -> dict[str, str]:
    return host_python.check({host_python.HEADERS: str(folder)})


@pytest.mark.parametrize(("version", "abi"), [("3.10.13", "cp310"), ("3.12.0rc1", "cp312")])
def test_a_folder_of_headers_tells_its_version(tmp_path: Path, version: str, abi: str) -> None:
    folder = headers(tmp_path / "include", version)
    wanted = {"abi": abi, "version": version, "folder": str(folder)}
    assert described(folder) == wanted


@pytest.mark.parametrize(
    ("version", "config", "abi", "words"),
    [
        ("3.9.18", "", "cp39", ("of Python 3.9.18", "too old; 3.10 or newer")),
        ("2.7.18", "", "cp27", ("of Python 2.7.18", "too old")),
        (
            "3.13.1",
            "#define Py_GIL_DISABLED 1",
            "cp313t",
            ("of Python 3.13.1", "free-threaded build (cp313t)", "global interpreter lock"),
        ),
        ("3.12.1", "#define Py_DEBUG 1", "cp312d", ("debug build (cp312d)", "ordinary build")),
    ],
)
def test_a_build_that_serves_no_extension_is_refused_by_name(
    tmp_path: Path, version: str, config: str, abi: str, words: tuple[str, ...]
) -> None:
    folder = headers(tmp_path / "include", version, config)
    with pytest.raises(host_python.Refused) as refused:
        described(folder)
    assert refused.value.abi == abi
    for word in (host_python.HEADERS, str(folder), *words):
        assert word in str(refused.value)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda folder: (folder / "Python.h").unlink(), "there is no Python.h"),
        (lambda folder: (folder / "pyconfig.h").unlink(), "there is no pyconfig.h"),
        (lambda folder: (folder / "patchlevel.h").unlink(), "patchlevel.h tells no version"),
        (lambda folder: (folder / "patchlevel.h").write_text("?"), "patchlevel.h tells no version"),
    ],
)
def test_a_folder_without_headers_is_refused(tmp_path: Path, spoil, words: str) -> None:
    folder = headers(tmp_path / "include")
    spoil(folder)
    with pytest.raises(host_python.Refused, match=words) as refused:
        described(folder)
    assert "like /usr/include/python3.12" in str(refused.value)


def test_headers_of_another_implementation_are_refused(tmp_path: Path) -> None:
    level = (
        "#define PY_MAJOR_VERSION 3\n#define PY_MINOR_VERSION 10\n"
        '#define PY_VERSION "3.10.14"\n#define PYPY_VERSION "7.3.17"\n'
    )
    with pytest.raises(host_python.Refused, match=r"PyPy's, and the extension is CPython's"):
        described(headers(tmp_path / "include", level=level))


def test_a_relative_folder_is_refused() -> None:
    with pytest.raises(host_python.Refused, match=r"'include': .*absolute path"):
        described("include")


def this_python(monkeypatch: pytest.MonkeyPatch, folder: Path, **config: object) -> None:
    """Makes sysconfig tell another build of the Python that runs this."""
    real = sysconfig.get_config_var
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(folder))
    monkeypatch.setattr(
        sysconfig, "get_config_var", lambda name: config[name] if name in config else real(name)
    )


def test_the_interpreters_own_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = ".".join(str(part) for part in sys.version_info[:3])
    folder = headers(tmp_path / "include", version)
    this_python(monkeypatch, folder)
    assert host_python.check({}) == {"abi": ABI, "version": version, "folder": str(folder)}


def test_missing_headers_name_the_package_that_brings_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    this_python(monkeypatch, tmp_path / "nowhere")
    with pytest.raises(host_python.Refused) as refused:
        host_python.check({})
    for word in (
        f"Python {SHORT}.",
        sys.executable,
        f"{tmp_path}/nowhere/Python.h",
        f"python{SHORT}-dev (Debian, Ubuntu)",
        "python3-devel (Fedora)",
        host_python.HEADERS,
    ):
        assert word in str(refused.value)
    # `auto` needs the ABI: with locked headers those of the machine are not missed.
    assert refused.value.abi == ABI


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"Py_GIL_DISABLED": 1}, "free-threaded build"),
        ({"Py_DEBUG": 1}, "debug build"),
        ({"EXT_SUFFIX": ".cpython-312-x86_64-linux-musl.so"}, "linux-musl.so, not .*with glibc"),
    ],
)
def test_an_interpreter_that_loads_no_such_extension_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: dict[str, object], words: str
) -> None:
    this_python(monkeypatch, headers(tmp_path / "include"), **config)
    with pytest.raises(host_python.Refused, match=words) as refused:
        host_python.check({})
    # No locked ABI, so that `auto` takes none in its place.
    assert refused.value.abi not in ("cp311", "cp313", "cp314")


def test_headers_of_another_version_than_the_interpreter_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    this_python(monkeypatch, headers(tmp_path / "include", "3.99.1"))
    with pytest.raises(host_python.Refused, match=r"headers in .* are of 3\.99\.1 \(cp399\)"):
        host_python.check({})


def test_the_copy_has_headers_alone_and_one_digest_of_them(tmp_path: Path) -> None:
    folder = headers(tmp_path / "include/python3.12")
    first = host_python.copy(described(folder), str(tmp_path / "first"))
    found = {str(p.relative_to(tmp_path / "first")) for p in (tmp_path / "first").rglob("*.*")}
    assert found == {
        "python3.12",
        *(f"python3.12/{name}" for name in ("Python.h", "patchlevel.h", "pyconfig.h")),
        "python3.12/internal/pycore.h",
    }
    assert first["version"] == "3.12.1"
    assert len(first["sha256"]) == 64
    # The same headers elsewhere have the same digest, changed or renamed ones another.
    elsewhere = headers(tmp_path / "elsewhere")
    assert host_python.copy(described(elsewhere), str(tmp_path / "second")) == first
    (elsewhere / "internal/pycore.h").rename(elsewhere / "internal/pycore2.h")
    renamed = host_python.copy(described(elsewhere), str(tmp_path / "third"))
    (folder / "internal/pycore.h").write_text("// changed\n")
    changed = host_python.copy(described(folder), str(tmp_path / "fourth"))
    assert len({copied["sha256"] for copied in (first, renamed, changed)}) == 3


def test_debians_folder_of_the_machine_type_is_copied_and_read(tmp_path: Path) -> None:
    folder = headers(tmp_path / "usr/include/python3.12")
    machine = tmp_path / "usr/include/x86_64-linux-gnu/python3.12"
    machine.mkdir(parents=True)
    (folder / "pyconfig.h").write_text("#include <x86_64-linux-gnu/python3.12/pyconfig.h>\n")
    (machine / "pyconfig.h").write_text("#define HAVE_ALARM 1\n")
    first = host_python.copy(described(folder), str(tmp_path / "copy"))
    assert (tmp_path / "copy/x86_64-linux-gnu/python3.12/pyconfig.h").is_file()
    (machine / "pyconfig.h").write_text("#define HAVE_ALARM 2\n")
    assert host_python.copy(described(folder), str(tmp_path / "again")) != first
    (machine / "pyconfig.h").write_text("#define Py_DEBUG 1\n")
    with pytest.raises(host_python.Refused, match="debug build"):
        described(folder)


def test_the_program_tells_a_refusal_as_a_description(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = headers(tmp_path / "include", "3.9.1")
    monkeypatch.setenv(host_python.HEADERS, str(folder))
    assert host_python.main(["describe"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["abi"], told["folder"]) == ("cp39", str(folder))
    assert "too old" in told["trouble"]
    assert host_python.main(["copy", str(tmp_path / "copy")]) == 1
    assert "too old" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()
