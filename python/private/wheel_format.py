# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The files of a wheel by its specifications: PEP 427, 600 (manylinux), 621, 639."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from python.private import elf

# The earliest time that a zip file can hold: when a file was made does not show.
_EPOCH = (1980, 1, 1, 0, 0, 0)
# Libraries that PEP 600 lets a manylinux wheel for x86-64 need, as far as this project uses them.
_ALLOWED_NEEDED = frozenset(
    {
        "ld-linux-x86-64.so.2",
        "libc.so.6",
        "libdl.so.2",
        "libm.so.6",
        "libpthread.so.0",
        "librt.so.1",
    }
)
# manylinux begins with the glibc of manylinux1.
_OLDEST_GLIBC = (2, 5)
_GLIBC = re.compile(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?")
_NORMAL_NAME = re.compile(r"[-_.]+")
_PROJECT_KEYS = frozenset(
    {
        "name",
        "description",
        "requires-python",
        "license",
        "keywords",
        "classifiers",
        "dependencies",
        "optional-dependencies",
        "scripts",
        "entry-points",
        "urls",
    }
)


class WheelError(Exception):
    """The request makes no true wheel."""


def lowest_glibc(objects: Mapping[str, bytes]) -> tuple[int, int]:
    """The oldest glibc that serves all shared objects (name -> bytes).

    Raises WheelError where one needs a library, or a symbol version, that manylinux has not.
    """
    lowest = _OLDEST_GLIBC
    for name, data in sorted(objects.items()):
        found = elf.read(data)
        foreign = sorted(set(found.needed) - _ALLOWED_NEEDED)
        if foreign:
            raise WheelError(
                f"{name} needs {', '.join(foreign)}, which a manylinux system need not have; link "
                f"statically all but {', '.join(sorted(_ALLOWED_NEEDED))}"
            )
        for soname, version in sorted(found.versions):
            match = _GLIBC.fullmatch(version)
            if match is None:
                raise WheelError(
                    f"{name} needs {version} of {soname}, which is no version of glibc"
                )
            lowest = max(lowest, (int(match[1]), int(match[2])))
    return lowest


def platform_tag(glibc: str, objects: Mapping[str, bytes]) -> str:
    """The manylinux tag for glibc ("2.34"), which must be the lowest true one."""
    lowest = ".".join(str(part) for part in lowest_glibc(objects))
    if glibc != lowest:
        raise WheelError(
            f"the wheel is tagged for glibc {glibc}, but the lowest that serves it is {lowest}: "
            f'set glibc = "{lowest}"'
        )
    return f"manylinux_{glibc.replace('.', '_')}_x86_64"


def metadata(
    project: Mapping[str, Any], version: str, readme: str, licence_files: Sequence[str]
) -> str:
    """METADATA from a [project] table (PEP 621's names). Licence files lie in licenses/ (PEP 639).

    Raises WheelError for a key that is not known here.
    """
    unknown = sorted(set(project) - _PROJECT_KEYS)
    if unknown:
        raise WheelError(f"unknown keys {unknown} in [project]; known: {sorted(_PROJECT_KEYS)}")
    fields = [
        ("Metadata-Version", "2.4"),
        ("Name", project["name"]),
        ("Version", version),
        ("Summary", project["description"]),
        ("Keywords", ",".join(project.get("keywords", ()))),
        *(("Classifier", classifier) for classifier in project.get("classifiers", ())),
        *(("Project-URL", f"{k}, {v}") for k, v in sorted(project.get("urls", {}).items())),
        ("Requires-Python", project["requires-python"]),
        ("License-Expression", project["license"]),
        *(("License-File", name) for name in licence_files),
    ]
    fields += [("Requires-Dist", r) for r in project.get("dependencies", ())]
    for extra, requirements in sorted(project.get("optional-dependencies", {}).items()):
        fields.append(("Provides-Extra", extra))
        fields += [("Requires-Dist", f'{r}; extra == "{extra}"') for r in requirements]
    fields.append(("Description-Content-Type", "text/markdown; charset=UTF-8"))
    head = "".join(f"{key}: {value}\n" for key, value in fields if value)
    return f"{head}\n{readme}"


def entry_points(project: Mapping[str, Any]) -> str:
    """entry_points.txt: the commands and the entry points of a [project] table; "": it has none.

    Raises WheelError for commands that are entry points, as PEP 621 says.
    """
    groups = dict(project.get("entry-points", {}))
    own = sorted(groups.keys() & {"console_scripts", "gui_scripts"})
    if own:
        raise WheelError(
            f"{own} in [project.entry-points]; allowed: other groups; [project.scripts]"
        )
    if "scripts" in project:
        groups["console_scripts"] = project["scripts"]
    parts = []
    for group, points in sorted(groups.items()):
        lines = [f"{name} = {target}\n" for name, target in sorted(points.items())]
        parts.append("".join([f"[{group}]\n", *lines]))
    return "\n".join(parts)


def wheel_file(tag: str) -> str:
    """WHEEL: the kind of the archive."""
    return f"Wheel-Version: 1.0\nGenerator: aiter-attn\nRoot-Is-Purelib: false\nTag: {tag}\n"


def _record_line(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def dist_info(distribution: str, version: str) -> str:
    """The folder of a wheel's own files."""
    return f"{_NORMAL_NAME.sub('_', distribution)}-{version}.dist-info"


def archive(files: Mapping[str, bytes], information: str) -> bytes:
    """The wheel: `files` and a RECORD of them, the same bytes for the same files.

    information is the dist-info folder, which comes last, as PEP 427 recommends.
    """
    names = sorted(files, key=lambda name: (name.startswith(f"{information}/"), name))
    record_name = f"{information}/RECORD"
    lines = [_record_line(name, files[name]) for name in names]
    record = "".join([*lines, f"{record_name},,\n"]).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        for name, data in _with(files, names, record_name, record):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3  # Unix, on any host
            entry.external_attr = (0o100755 if _is_program(name, data) else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, data)
    return buffer.getvalue()


def _is_program(name: str, data: bytes) -> bool:
    """Whether a file is to be executed: a shared object, a program, a script that names its own."""
    return name.endswith(".so") or data.startswith((b"\x7fELF", b"#!"))


def _with(
    files: Mapping[str, bytes], names: Iterable[str], last: str, data: bytes
) -> Iterable[tuple[str, bytes]]:
    for name in names:
        yield name, files[name]
    yield last, data
