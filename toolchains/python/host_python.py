# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The machine's own Python and its headers, for the repository rules of private/host_python.bzl.

    host_python.py describe       prints abi, version, folder and trouble, as JSON
    host_python.py copy FOLDER    copies the headers to FOLDER, prints version and sha256, as JSON

They are those of the Python that runs this, or in the folder of AITER_ATTN_PYTHON_HEADERS. Any
Python 3 can run this: one that is too old is to be refused by name.
"""

import hashlib
import json
import os
import re
import shutil
import sys
import sysconfig

HEADERS = "AITER_ATTN_PYTHON_HEADERS"
OLDEST = (3, 10)
_MULTIARCH = "x86_64-linux-gnu"
_DEFINE = re.compile(r'^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+"?([^"\s]*)', re.MULTILINE)


class Refused(Exception):
    """The headers serve no build. `abi` is the ABI tag as far as it is known."""

    def __init__(self, reason: str, abi: str = "") -> None:
        super().__init__(reason)
        self.abi = abi


def _defined(path: str) -> "dict[str, str]":
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return dict(_DEFINE.findall(file.read()))
    except OSError:
        return {}


def check_build(who: str, version: "tuple[int, int]", tags: str) -> str:
    """Returns the ABI tag of a Python; tags: "t" free-threaded, "d" debugging. Raises Refused."""
    abi = f"cp{version[0]}{version[1]}{tags}"
    if version < OLDEST:
        raise Refused(f"{who}: it is too old; 3.10 or newer is needed. Use a newer python3", abi)
    if "t" in tags:
        raise Refused(
            f"{who}: it is a free-threaded build ({abi}), and the extension relies on the global "
            "interpreter lock. Use the ordinary build of that version",
            abi,
        )
    if "d" in tags:
        raise Refused(
            f"{who}: it is a debug build ({abi}), whose ABI tag no wheel here has. Use the "
            "ordinary build of that version",
            abi,
        )
    return abi


def check_interpreter() -> str:
    """Returns the ABI tag of the Python that runs this. Raises Refused."""
    version = sys.version_info[:2]
    who = f"Python {sys.version.split()[0]} ({sys.executable})"
    if sys.implementation.name != "cpython":
        raise Refused(
            f"{who}: it is {sys.implementation.name}, and the extension is CPython's. Use a CPython"
        )
    free_threaded = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    debug = "d" if sysconfig.get_config_var("Py_DEBUG") else ""
    abi = check_build(who, version, free_threaded + debug)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    wanted = f".cpython-{abi[2:]}-{_MULTIARCH}.so"
    if suffix != wanted:
        raise Refused(
            f"{who}: its extensions end with {suffix}, not {wanted}: it is no build for x86-64 "
            "Linux with glibc. Use one that is",
            f"{abi} of {suffix}",
        )
    return abi


def _multiarch_folder(folder: str, version: str) -> str:
    """Where Debian keeps pyconfig.h of one machine type; it need not be there."""
    return os.path.join(os.path.dirname(folder), _MULTIARCH, "python" + version)


def check_folder(folder: str, named: bool) -> "tuple[str, str]":
    """Returns ABI tag and version of a folder's headers. Raises Refused.

    `named`: the folder was named by AITER_ATTN_PYTHON_HEADERS.
    """
    who = f"{HEADERS} is {folder!r}" if named else f"the headers in {folder}"
    wanted = "want the absolute path of the folder with Python.h, like /usr/include/python3.12"
    if not os.path.isabs(folder) or not os.path.isfile(f"{folder}/Python.h"):
        raise Refused(f"{who}: there is no Python.h; {wanted}")
    level = _defined(f"{folder}/patchlevel.h")
    try:
        version = int(level["PY_MAJOR_VERSION"]), int(level["PY_MINOR_VERSION"])
        full = level["PY_VERSION"]
    except (KeyError, ValueError):
        raise Refused(f"{who}: its patchlevel.h tells no version; {wanted}") from None
    if "PYPY_VERSION" in level:
        raise Refused(f"{who}: it is PyPy's, and the extension is CPython's. Name a CPython's")
    machine = _multiarch_folder(folder, f"{version[0]}.{version[1]}")
    config = {**_defined(f"{folder}/pyconfig.h"), **_defined(f"{machine}/pyconfig.h")}
    if not config:
        raise Refused(f"{who}: there is no pyconfig.h; {wanted}")
    free_threaded = "t" if config.get("Py_GIL_DISABLED") == "1" else ""
    debug = "d" if config.get("Py_DEBUG") == "1" else ""
    return check_build(f"{who}, of Python {full}", version, free_threaded + debug), full


def check(environ: "dict[str, str]") -> "dict[str, str]":
    """Returns abi, version and folder. Raises Refused."""
    named = environ.get(HEADERS, "")
    if named:
        abi, version = check_folder(os.path.normpath(named), True)
        return {"abi": abi, "version": version, "folder": os.path.normpath(named)}
    abi = check_interpreter()
    short = f"{sys.version_info[0]}.{sys.version_info[1]}"
    folder = sysconfig.get_path("include")
    if not os.path.isfile(f"{folder}/Python.h"):
        raise Refused(
            f"Python {sys.version.split()[0]} ({sys.executable}) has no headers: there is no "
            f"{folder}/Python.h. Install python{short}-dev (Debian, Ubuntu) or python3-devel "
            f"(Fedora), use a Python of pyenv's or uv's, which have them, or name a folder that "
            f"has them in {HEADERS}",
            abi,
        )
    found, version = check_folder(folder, False)
    if found != abi:
        raise Refused(
            f"Python {sys.version.split()[0]} ({sys.executable}) is {abi}, but the headers in "
            f"{folder} are of {version} ({found}). Mend that Python, or name a folder in {HEADERS}",
            abi,
        )
    return {"abi": abi, "version": version, "folder": folder}


def _copy_tree(source: str, target: str) -> "dict[str, str]":
    """Copies the headers below a folder; returns their digests by path below `target`."""
    digests = {}
    for folder, _, files in os.walk(source, followlinks=True):
        for name in files:
            if not name.endswith(".h"):
                continue
            inner = os.path.relpath(os.path.join(folder, name), source)
            copied = os.path.join(target, inner)
            os.makedirs(os.path.dirname(copied), exist_ok=True)
            shutil.copyfile(os.path.join(folder, name), copied)
            with open(copied, "rb") as file:
                digests[copied] = hashlib.sha256(file.read()).hexdigest()
    return digests


def copy(described: "dict[str, str]", target: str) -> "dict[str, str]":
    """Copies the headers to target/python3.NN, and those of the machine type beside it, as in
    Debian. Returns the version and one digest over names and contents."""
    short = re.sub(r"^(\d+\.\d+).*", r"\1", described["version"])
    digests = _copy_tree(described["folder"], os.path.join(target, "python" + short))
    machine = os.path.join(target, _MULTIARCH, "python" + short)
    digests.update(_copy_tree(_multiarch_folder(described["folder"], short), machine))
    lines = sorted(
        f"{os.path.relpath(path, target)} {digest}\n" for path, digest in digests.items()
    )
    whole = hashlib.sha256("".join(lines).encode()).hexdigest()
    return {"version": described["version"], "sha256": whole}


def main(arguments: "list[str]") -> int:
    folder = os.environ.get(HEADERS) or sysconfig.get_path("include")
    try:
        described = check(dict(os.environ))
    except Refused as refused:
        if arguments == ["describe"]:
            trouble = {"abi": refused.abi, "version": "", "folder": folder, "trouble": str(refused)}
            print(json.dumps(trouble))
            return 0
        print(refused, file=sys.stderr)
        return 1
    if arguments == ["describe"]:
        print(json.dumps({**described, "trouble": ""}))
    else:
        print(json.dumps(copy(described, arguments[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
