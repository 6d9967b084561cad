# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Where the files come from that enter a build: from the checkout, or from a locked archive.

A file of an external repository is taken for locked only if its bytes are those of a member of an
archive whose sha256 is in a lock. Files that a repository rule makes of such are in MADE, with the
reason.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

Reader = Callable[[], bytes]

# Pattern ("*" crosses folders) -> what makes the file, or the template that it must be made of.
MADE = {
    "external/*/debian_lock.json": "the rule's own list of the locked packages",
    "external/*/__pycache__/*.pyc": "byte code, by the locked Python of locked sources",
    "external/*ck_headers/*.hpp": "upstream's lines of fmha.hpp that a pipeline needs, by ckgen",
    "external/*ck_fmha/*.cpp": "instances, written by ckgen of @composable_kernel",
    "external/*variant_set_*/rows.json": "rows of the launch table, by ckgen",
    "external/*variant_set_*/launch/*.cpp": "launch code, by ckgen",
    "external/*llvm/bin/*": Path("toolchains/llvm/tool.sh"),
    "external/*python_3_*/bin/python3": Path("toolchains/python/python.sh.tpl"),
}
_PATCHES = "kernels/ck_fmha/patches"
_PATCHED = "external/*composable_kernel/"


def is_made_of(text: str, template: str) -> bool:
    """Whether a text is a template with its @PLACEHOLDERS@ filled, on one line each."""
    parts = re.split(r"@[A-Z]+@", template)
    return re.fullmatch("[^\n]*".join(map(re.escape, parts)), text) is not None


def patched_files(checkout: Path) -> set[str]:
    """Returns the files of upstream that the patches of the checkout change."""
    texts = (patch.read_text() for patch in (checkout / _PATCHES).rglob("*.patch"))
    return {name for text in texts for name in re.findall(r"^\+\+\+ b/(\S+)", text, re.M)}


def is_made(path: str, file: Path, checkout: Path) -> bool:
    """Whether a repository rule makes a file of locked files."""
    for pattern, how in MADE.items():
        if fnmatchcase(path, pattern):
            return isinstance(how, str) or is_made_of(
                file.read_text(), (checkout / how).read_text()
            )
    return any(fnmatchcase(path, f"{_PATCHED}*{name}") for name in patched_files(checkout))


def members(archive: Path, name: str) -> Iterator[tuple[int, Reader]]:
    """Yields size and reader of each file in an archive: a .deb, a wheel, an sdist."""
    if name.endswith((".whl", ".zip")):
        with zipfile.ZipFile(archive) as wheel:
            for info in wheel.infolist():
                yield info.file_size, lambda info=info: wheel.read(info)
        return
    if name.endswith(".deb"):
        command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE) as process,
            tarfile.open(fileobj=process.stdout, mode="r|") as packed,
        ):
            yield from _tar_members(packed)
        return
    with tarfile.open(archive) as packed:
        yield from _tar_members(packed)


def _tar_members(archive: tarfile.TarFile) -> Iterator[tuple[int, Reader]]:
    for member in archive:
        if member.isfile():
            yield member.size, lambda member=member: archive.extractfile(member).read()


def unexplained(
    leaves: Iterable[str],
    folder: Path,
    checkout: Path,
    tracked: set[str],
    archives: Mapping[Path, str],
) -> list[str]:
    """Returns the inputs that are neither tracked, nor locked, nor made of such.

    Their paths are relative to `folder`; `archives`: locked file -> its name.
    """
    wanted: dict[tuple[int, str], set[str]] = {}
    strangers = []
    for path in leaves:
        file = folder / path
        if not path.startswith("external/"):
            if path not in tracked:
                strangers.append(path)
        elif not is_made(path, file, checkout):
            data = file.read_bytes()
            key = len(data), hashlib.sha256(data).hexdigest()
            wanted.setdefault(key, set()).add(path)
    for archive, name in archives.items():
        sizes = {size for size, _ in wanted}
        if not wanted:
            break
        for size, read in members(archive, name):
            if size in sizes:
                wanted.pop((size, hashlib.sha256(read()).hexdigest()), None)
    return sorted([*strangers, *(path for paths in wanted.values() for path in paths)])
