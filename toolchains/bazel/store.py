# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Fetches locked .deb files into a folder, each named by its sha256.

apt's own downloader does it, so that the machine's proxies, credentials and transports apply.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterable, Sequence

from toolchains.bazel.errors import Progress
from toolchains.debian.lock import Package

APT_HELPER = "/usr/lib/apt/apt-helper"
_APT_SETTINGS = (
    "APT::Sandbox::User=root",
    "Acquire::Retries=1",
    "Acquire::http::Timeout=20",
    "Acquire::https::Timeout=20",
)


def sha256(path: str) -> str:
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def location(store: str, package: Package) -> str:
    return os.path.join(store, package.sha256 + ".deb")


def _verified(path: str, package: Package) -> bool:
    return (
        os.path.isfile(path)
        and os.path.getsize(path) == package.size
        and sha256(path) == package.sha256
    )


def _file_name(url: str) -> str:
    return urllib.parse.unquote(url).rsplit("/", 1)[-1]


def failure_reasons(log: str) -> dict[str, str]:
    """Returns file name -> reason from what apt's downloader prints on failures.

    apt writes URLs in its own spelling; the file name at their end is what can be relied on.
    """
    reasons = {}
    for line in log.splitlines():
        m = re.match(r"E: Failed to fetch (\S+)\s+(.*)", line)
        if m:
            reasons[_file_name(m[1])] = m[2].strip()
    return reasons


def _move(part: str, place: str) -> None:
    if os.path.islink(part):  # a local archive's file is linked to, not copied
        shutil.copyfile(part, part + ".copy")
        os.unlink(part)
        part += ".copy"
    os.replace(part, place)


def _start(archive: str, packages: Sequence[Package], folder: str) -> subprocess.Popen[str]:
    command = [APT_HELPER, "-qq"]
    for setting in _APT_SETTINGS:
        command += ["-o", setting]
    command.append("download-file")
    for p in packages:
        command += [f"{archive}/{p.path}", location(folder, p), f"SHA256:{p.sha256}"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _fetched(folder: str) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(folder) if entry.is_file())


def archive_answered(reason: str) -> bool:
    """Whether a failure says that an archive lacks the locked file, rather than is out of reach."""
    return bool(
        re.search(r"404|not found|mismatch|unexpected size|not served as locked", reason, re.I)
    )


def _download(
    archive: str, packages: Sequence[Package], store: str, scratch: str, progress: Progress
) -> dict[Package, str]:
    """Downloads from one archive into the store. Returns package -> reason of the failures."""
    total = sum(p.size for p in packages) / 1e6
    helper = _start(archive, packages, scratch)
    try:
        log = None
        while log is None:
            try:
                log = helper.communicate(timeout=0.2)[1]
            except subprocess.TimeoutExpired:
                done = _fetched(scratch) / 1e6
                progress.show(f"fetching {done:.0f} of {total:.0f} MB from {archive}")
    except BaseException:
        helper.kill()
        helper.wait()
        raise
    reasons = failure_reasons(log)
    failed = {}
    for p in packages:
        part = location(scratch, p)
        if _verified(part, p):
            _move(part, location(store, p))
            continue
        reason = "not served as locked" if os.path.exists(part) else log.strip()[-300:]
        failed[p] = f"{archive}: {reasons.get(_file_name(p.path), reason)}"
        if os.path.lexists(part):
            os.unlink(part)
    return failed


def fetch(
    packages: Iterable[Package],
    store: str,
    scratch: str,
    archives: Sequence[str],
    progress: Progress,
) -> dict[Package, str]:
    """Brings the packages into the store, from each archive in turn.

    A file enters the store by rename, after its size and sha256 were checked; one that is
    there already is checked again. `scratch` is an existing folder on the store's file system.

    Returns package -> reason for those that no archive serves as locked.
    """
    os.makedirs(store, exist_ok=True)
    missing = [p for p in packages if not _verified(location(store, p), p)]
    failed: dict[Package, str] = {}
    for archive in archives:
        if not missing:
            break
        # One file first: an archive that is out of reach costs one time-out, not one for each.
        probe = min(missing, key=lambda p: p.size)
        now = _download(archive, [probe], store, scratch, progress)
        if not now or archive_answered(now[probe]):
            rest = [p for p in missing if p != probe]
            now |= _download(archive, rest, store, scratch, progress) if rest else {}
        else:
            now = dict.fromkeys(missing, now[probe])
        missing = list(now)
        failed = {p: "; ".join(filter(None, (failed.get(p), now[p]))) for p in missing}
    progress.clear()
    return failed
