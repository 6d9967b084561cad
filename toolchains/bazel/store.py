# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Fetches locked .deb files into a folder, each named by its sha256.

apt's own downloader does it, so that the machine's proxies, credentials and transports apply.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Sequence

from toolchains.bazel.errors import Progress
from toolchains.debian.lock import Package

APT_HELPER = "/usr/lib/apt/apt-helper"


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


def failure_reasons(log: str) -> dict[str, str]:
    """Returns URL -> reason from what apt's downloader prints for files it could not get."""
    reasons = {}
    for line in log.splitlines():
        m = re.match(r"E: Failed to fetch (\S+)\s+(.*)", line)
        if m:
            reasons[m[1]] = m[2].strip()
    return reasons


def _start(archive: str, packages: Sequence[Package], folder: str) -> subprocess.Popen[str]:
    command = [APT_HELPER, "-qq", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=2"]
    command.append("download-file")
    for p in packages:
        command += [f"{archive}/{p.path}", location(folder, p), f"SHA256:{p.sha256}"]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def _fetched(folder: str) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(folder) if entry.is_file())


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
    missing = {p: "" for p in packages if not _verified(location(store, p), p)}
    for archive in archives:
        if not missing:
            break
        total = sum(p.size for p in missing) / 1e6
        helper = _start(archive, list(missing), scratch)
        try:
            log = ""
            while True:
                try:
                    log = helper.communicate(timeout=0.2)[1]
                    break
                except subprocess.TimeoutExpired:
                    got = _fetched(scratch) / 1e6
                    progress.show(f"fetching {got:.0f} of {total:.0f} MB from {archive}")
        except BaseException:
            helper.kill()
            helper.wait()
            raise
        reasons = failure_reasons(log)
        for p in list(missing):
            part = location(scratch, p)
            if _verified(part, p):
                # A local archive's file is linked to, not copied.
                if os.path.islink(part):
                    target = os.path.realpath(part)
                    os.unlink(part)
                    subprocess.run(["cp", target, part], check=True)
                os.replace(part, location(store, p))
                del missing[p]
                continue
            default = "not served with the locked size and sha256" if os.path.exists(part) else log
            reason = reasons.get(f"{archive}/{p.path}", default.strip()[-300:])
            missing[p] = f"{missing[p]}{archive}: {reason}; "
            if os.path.lexists(part):
                os.unlink(part)
    progress.clear()
    return {p: reason.rstrip("; ") for p, reason in missing.items()}
