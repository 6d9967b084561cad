# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Code that was written for structs of another version than the library's does not compile, and the
compiler says why."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from aiter.compat.fields import PASSES, PINS, STRUCTS, layout

_HEADERS = [Path(path).absolute() for path in os.environ["HEADERS"].split()]
_ELSEWHERE = "lies elsewhere: compile for x86-64 with libstdc++, _GLIBCXX_USE_CXX11_ABI=1"
_OTHER_SIZE = "has another size than aiter-attn's library reads"
_DECLARATIONS = Path("aiter/compat/include").absolute()


def header(this: str, pin: str) -> Path:
    return next(path for path in _HEADERS if path.parts[-2:] == (pin, f"mha_{this}.h"))


def compile_(folder: Path, source: str, *options: str, includes: tuple[Path, ...] = ()) -> str:
    """The compiler's words about the source; "" where it compiles."""
    file = folder / "source.cc"
    file.write_text(source)
    (compiler,) = (path for path in os.environ["CC"].split() if path.endswith("/c++"))
    done = subprocess.run(
        [Path(compiler).absolute(), "-c", "-fsyntax-only", "-std=c++17", "-ferror-limit=0",
         *(f"-I{path}" for path in (*includes, _DECLARATIONS)), *options, file],
        env={"PATH": "/usr/bin:/bin", "RUNFILES": str(Path.cwd().parent)},
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert (done.returncode == 0) == ("error:" not in done.stderr), done.stderr
    return done.stderr


def copy(folder: Path, this: str, pin: str, old: str, new: str) -> Path:
    """A folder with the pin's header, in which `new` is in the place of `old`."""
    text = header(this, pin).read_text(encoding="utf-8")
    assert text.count(old) == 1, old
    (folder / "include").mkdir()
    (folder / f"include/mha_{this}.h").write_text(text.replace(old, new))
    return folder / "include"


@pytest.mark.parametrize("pin", PINS)
@pytest.mark.parametrize("this", PASSES)
def test_fields_of_other_pins(tmp_path: Path, this: str, pin: str) -> None:
    own = {field.name for field in layout(this, pin)[0]}
    every = {field.name for other in PINS for field in layout(this, other)[0]}
    source = f"#include <mha_{this}.h>\n" + "".join(
        f"auto read_{name}(aiter::mha_{this}_args& a) {{ return &a.{name}; }}\n"
        for name in sorted(every)
    )
    said = compile_(tmp_path, source, includes=(header(this, pin).parent,))
    missing = set(re.findall(rf"no member named '(\w+)' in 'aiter::mha_{this}_args'", said))
    assert missing == every - own, said
    assert said.count("error:") == len(missing)


@pytest.mark.parametrize("this", PASSES)
@pytest.mark.parametrize(
    "new", ["int64_t {};", "bool {}; void* more;", "void* more; bool {};"],
    ids=["wider", "more behind", "more in front"],
)  # fmt: skip
def test_a_field_that_moves_others(tmp_path: Path, this: str, new: str) -> None:
    changed = "is_group_mode"
    folder = copy(tmp_path, this, PINS[-1], f"bool {changed};", new.format(changed))
    said = compile_(tmp_path, f"#include <mha_{this}.h>\n", includes=(folder,))
    names = [field.name for field in layout(this, PINS[-1])[0]]
    moved = re.findall(rf"{STRUCTS[this]}\.(\w+) {re.escape(_ELSEWHERE)}", said)
    assert moved
    assert set(moved) <= set(names[names.index(changed) :])


@pytest.mark.parametrize("this", PASSES)
@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("bool is_group_mode;", "", "no member named 'is_group_mode'"),
        ("\n};\n", "    void* more;\n};\n", _OTHER_SIZE),
    ],
    ids=["missing", "at the end"],
)
def test_a_field_less_or_more(tmp_path: Path, this: str, old: str, new: str, text: str) -> None:
    folder = copy(tmp_path, this, PINS[-1], old, new)
    assert text in compile_(tmp_path, f"#include <mha_{this}.h>\n", includes=(folder,))


@pytest.mark.parametrize("this", PASSES)
def test_strings_of_another_abi(tmp_path: Path, this: str) -> None:
    said = compile_(
        tmp_path, f"#include <mha_{this}.h>\n", "-D_GLIBCXX_USE_CXX11_ABI=0",
        includes=(header(this, PINS[0]).parent,),
    )  # fmt: skip
    assert f"{STRUCTS[this]}.is_group_mode {_ELSEWHERE}" in said


def test_another_stream_config(tmp_path: Path) -> None:
    """Of headers that are found first, as Composable Kernel's are."""
    text = (_DECLARATIONS / "ck_tile/host.hpp").read_text(encoding="utf-8")
    name = re.search(r"struct stream_config\s*\{", text)
    assert name
    (tmp_path / "ck_tile").mkdir()
    changed = text.replace(name[0], name[0] + " int more[4];")
    (tmp_path / "ck_tile/host.hpp").write_text(changed)
    includes = (tmp_path, header("fwd", PINS[-1]).parent)
    said = compile_(tmp_path, "#include <mha_fwd.h>\n", includes=includes)
    assert f"ck_tile::stream_config.stream_id_ {_ELSEWHERE}" in said
