# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheel has the same bytes where everything about the machine differs, without any cache.

One build runs on this machine, by the Bazel that runs this test, or in a copy of the checkout. The
other runs on another Debian release, offline, as another user with another umask, time zone,
locale, clock and number of jobs; every compiler, linker and interpreter that an action could find
there is a program that fails.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e import clone, differences, other_system

SET = os.environ["VARIANTS"]
BUILD = (f"--//kernels:variants={SET}", "//python:attn_wheel")
COMPILE = "HipCodeObject"

FAKETIME = f"{other_system.LIBRARIES}/faketime/libfaketime.so.1"
PROGRAMS = (
    "ar as c++ cc clang clang++ cmake cpp g++ gcc gold hipcc ld ld.bfd ld.gold ld.lld lld make nm "
    "objcopy objdump perl python python3 python3.13 ranlib readelf strip "
    # The linker that clang prefers to the one beside it, where it may search PATH for one.
    "x86_64-linux-gnu-ld.lld"
)
# Of these, some that a careless action is likely to start.
FOUND = ("cc", "g++", "ld", "as", "clang", "python3")
ETC = {
    # Years ahead of the real clock, in every process of the root: the loaders of all its C
    # libraries, the locked ones of clang and Python included, read these files.
    "ld.so.preload": "/opt/faketime.so\n",
    "faketimerc": "+3000d\n",
    # To clang the one distribution that wants other hash tables in what is linked.
    "os-release": "ID=opensuse\n",
}


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=False)
    subprocess.run(["rm", "-rf", str(tmp_path)], check=False)


def bind(source: Path, target: str) -> tuple[str, str, str]:
    return "--ro-bind", str(source), target


def elsewhere(base: Path) -> tuple[clone.Clone, list[str]]:
    """Returns a copy of the checkout, and the command that runs another in the other system."""
    scratch = base / "scratch"
    for program in PROGRAMS.split():
        said = f'echo "the host\'s {program} was run" >&2; exit 1'
        other_system.script(scratch / "failing" / program, said)
    # The Python of bazelw and of repository rules, where no action looks.
    python = " ".join(other_system.command("python3.13", "/opt/system"))
    other_system.script(scratch / "bin/python3", f'exec {python} "$@"')
    other_system.script(scratch / "bin/wide-umask", 'umask 0000; exec "$@"')
    etc = other_system.etc(scratch / "etc", "/home/elsewhere", "mallory")
    for name, text in ETC.items():
        (etc / name).write_text(text)
    locales = scratch / "locales"
    locales.mkdir()
    system = other_system.tree()
    subprocess.run(
        [*other_system.command("localedef"), "-i", "tr_TR", "-f", "UTF-8", locales / "tr_TR.UTF-8"],
        env={"I18NPATH": str(system / "usr/share/i18n")},
        check=True,
    )
    faketime = other_system.unpack("faketime", scratch / "faketime") / FAKETIME
    tools = [f"{scratch}/failing/python3", "/usr/bin/python3.13"]
    wrapper = other_system.root(
        [
            *(part for f in (system / "usr").iterdir() for part in bind(f, f"/usr/{f.name}")),
            *("--ro-bind", *tools),
            *("--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"),
            *("--symlink", "usr/lib64", "/lib64", "--symlink", "usr/sbin", "/sbin"),
            *("--ro-bind", f"{scratch}/failing", "/usr/local/bin"),
            *("--ro-bind", f"{scratch}/bin", "/opt/bin", "--ro-bind", str(system), "/opt/system"),
            *("--ro-bind", str(faketime), "/opt/faketime.so"),
            *("--ro-bind", str(etc), "/etc", "--ro-bind", str(locales), "/usr/lib/locale"),
            *("--ro-bind", str(other_system.locked_files()), "/opt/locked"),
            *("--bind", str(base / "there"), str(base / "there")),
            *("--bind", str(base / "there/home"), "/home/elsewhere"),
            *("--chdir", str(base / "there/checkout")),
        ],
        {
            "AITER_ATTN_MIRROR": "/opt/locked",
            "AITER_ATTN_STRICT": "1",
            "BAZELW_MODE": "debian",
            "HOME": "/home/elsewhere",
            "LC_ALL": "tr_TR.UTF-8",
            # Right for the Python in PATH alone.
            "PYTHONHOME": "/opt/system/usr",
            "PATH": "/opt/bin:/usr/local/bin:/usr/bin",
            "TZ": "Asia/Kathmandu",
        },
    )
    return clone.Clone(base, "there", wrapper=[*wrapper, "/opt/bin/wide-umask"]), wrapper


def assert_elsewhere(wrapper: Sequence[str]) -> None:
    """The root differs in the ways it is made to: else a comparison of wheels built there says
    nothing."""
    looks = (
        "date +%Y; date +%z; locale country_name; id -un; . /usr/lib/os-release; echo $VERSION_ID"
    )
    runs = "; ".join(f"{program}; echo $?" for program in (*FOUND, "/bin/python3"))
    seen = subprocess.run(
        [*wrapper, "sh", "-c", f"{looks}; PATH=/bin:/usr/bin:/usr/local/bin; {runs}"],
        text=True,
        capture_output=True,
        env={},
    )
    year = (datetime.datetime.now() + datetime.timedelta(days=3000)).year
    expected = [str(year), "+0545", "Türkiye", "mallory", "13", *["1"] * (len(FOUND) + 1)]
    assert seen.stdout.split() == expected, seen
    assert seen.stderr.count("was run") == len(FOUND) + 1, seen


@contextlib.contextmanager
def reference_wheel(base: Path, there: clone.Spawns) -> Iterator[Path]:
    """The wheel of this machine: as it is built on any day, or from nothing, too."""
    if "REFERENCE_WHEEL" in os.environ:
        yield Path(os.environ["REFERENCE_WHEEL"]).resolve()
        return
    here = clone.Clone(base, "here")
    try:
        spawns = here.build(*BUILD, "--jobs=3")
        assert spawns.executed[COMPILE] == there.executed[COMPILE]
        assert not spawns.cached, spawns.cached
        yield here.wheel()
    finally:
        here.close()


def test_a_build_elsewhere_without_a_cache_gives_the_same_wheel(base: Path) -> None:
    there, wrapper = elsewhere(base)
    assert_elsewhere(wrapper)
    spawns = there.build(*BUILD, "--jobs=2")
    assert spawns.executed[COMPILE] >= 4
    assert not spawns.cached, spawns.cached
    with reference_wheel(base, spawns) as reference:
        found = differences.of_wheels(reference, there.wheel())
        assert not found, "\n".join(found)
