# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Resolves groups of packages.toml anew from the archive's signed index.

Used by `./bazelw --relock debian`, and when a locked file has vanished from the archive. apt does
the fetching and checks the signatures, in a private state folder: the machine's own package state
is neither read nor changed.
"""

from __future__ import annotations

import dataclasses
import email.utils
import os
import pathlib
import re
import subprocess
import tempfile
from collections.abc import Iterable

from toolchains.debian import lock, mirrors, resolve
from toolchains.locks import constants, web
from toolchains.locks.errors import LocksError
from toolchains.locks.whole import whole

HERE = pathlib.Path(__file__).absolute().parent
PACKAGES = HERE / "packages.toml"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def _apt_options(state: str) -> list[str]:
    settings = (
        f"Dir::Etc::SourceList={state}/sources.list",
        "Dir::Etc::SourceParts=-",
        f"Dir::State::Lists={state}/lists",
        f"Dir::Cache={state}/cache",
        "Dir::State::status=/dev/null",
        "APT::Architecture=amd64",
        "APT::Architectures=amd64",
        "APT::Sandbox::User=root",
        "Acquire::Languages=none",
        "Acquire::Retries=2",
        # Suites that are not released yet may be past their Valid-Until; the signature holds.
        "Acquire::Check-Valid-Until=false",
    )
    return [part for setting in settings for part in ("-o", setting)]


def _release_time(state: str) -> str:
    """Returns when the index that apt fetched was signed."""
    (release,) = pathlib.Path(state, "lists").glob("*Release")
    date = re.search(r"^Date: (.*)$", release.read_text(encoding="utf-8"), re.M)
    if not date:
        raise LocksError(f"{release.name} has no Date")
    return email.utils.parsedate_to_datetime(date[1]).strftime(lock.TIME_FORMAT)


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError as e:
        raise LocksError(
            f"no {e.filename} here; resolving packages anew needs apt. "
            "Do it on a Debian machine and commit the lock"
        ) from e


def fetch_index(suite: str, archives: Iterable[str]) -> tuple[str, str]:
    """Returns a suite's package index and its time, from the first archive that serves it.

    The signature is checked against Debian's keyring of this machine. Raises LocksError with
    every archive's answer where none serves the suite.
    """
    signed_by = f"[signed-by={_KEYRING}] " if os.path.exists(_KEYRING) else ""
    failures = []
    for archive in archives:
        with tempfile.TemporaryDirectory(prefix="relock-") as state:
            for folder in ("lists/partial", "cache/archives/partial"):
                os.makedirs(f"{state}/{folder}")
            with open(f"{state}/sources.list", "w", encoding="utf-8") as f:
                f.write(f"deb {signed_by}{archive} {suite} main\n")
            options = _apt_options(state)
            got = _run("apt-get", "-qq", *options, "-o", "APT::Update::Error-Mode=any", "update")
            if got.returncode == 0:
                got = _run("apt-cache", *options, "dumpavail")
            if got.returncode == 0:
                return got.stdout, _release_time(state)
            failures.append(f"{web.shown(archive)}: {got.stderr.strip()[-400:]}")
    raise LocksError(
        f"no archive serves the index of suite {suite}; check the network, or set "
        f"{mirrors.VARIABLE} to a mirror's URL\n" + "\n".join(failures)
    )


def group_specs() -> dict[str, resolve.GroupSpec]:
    """Returns the groups of packages.toml."""
    return resolve.parse_groups(
        PACKAGES.read_text(encoding="utf-8"),
        PACKAGES.name,
        constants.read(HERE.parent / "versions/llvm.bzl"),
        constants.read(HERE.parent / "versions/abis.bzl")["ABIS"],
    )


def resolve_groups(
    specs: dict[str, resolve.GroupSpec], names: Iterable[str], archives: Iterable[str]
) -> dict[str, lock.Group]:
    """Resolves the named groups of packages.toml, each suite's index fetched once."""
    archives = list(archives)
    parsed: dict[str, tuple[resolve.Index, dict[str, list[str]]]] = {}
    groups = {}
    for name in names:
        if name not in specs:
            raise LocksError(f"{PACKAGES.name}: no group {name!r}; there are {sorted(specs)}")
        spec = specs[name]
        if spec.suite not in parsed:
            parsed[spec.suite] = resolve.parse_index(*fetch_index(spec.suite, archives))
        packages = resolve.choose(spec, *parsed[spec.suite], where=f"group {name!r}")
        groups[name] = lock.Group(spec.suite, packages)
    return groups


def resolve_anew(names: Iterable[str]) -> dict[str, lock.Group]:
    """Resolves groups of packages.toml with this machine's archives."""
    specs = group_specs()
    return resolve_groups(specs, names, mirrors.find())


def relock(names: Iterable[str] | None = None) -> list[str]:
    """Rewrites lock.json, all groups or only those named. Returns one line per change."""
    specs = group_specs()
    chosen = list(specs) if names is None else list(names)
    try:
        old = lock.read(lock.LOCK)
    except (FileNotFoundError, LocksError):
        if names is not None:
            raise
        old = {}  # all of it is written anew: a damaged lock is no obstacle
    new = {name: group for name, group in old.items() if name in specs}
    for name, group in resolve_groups(specs, chosen, mirrors.find()).items():
        before = old[name].packages if name in old else ()
        new[name] = dataclasses.replace(group, packages=_keep_times(group.packages, before))
    with whole(lock.LOCK) as scratch:
        scratch.write_text(lock.dump(new), encoding="utf-8")
    return changes(old, new)


def _keep_times(
    packages: Iterable[lock.Package], old: Iterable[lock.Package]
) -> tuple[lock.Package, ...]:
    """Gives files that were locked before the time that they were locked with."""
    times = {p.sha256: p.time for p in old}
    return tuple(dataclasses.replace(p, time=times.get(p.sha256, p.time)) for p in packages)


def changes(old: dict[str, lock.Group], new: dict[str, lock.Group]) -> list[str]:
    """Describes the difference of two locks, a line per package."""
    lines = []
    for name in sorted(set(old) | set(new)):
        before = {p.name: p for p in old[name].packages} if name in old else {}
        after = {p.name: p for p in new[name].packages} if name in new else {}
        for package in sorted(set(before) | set(after)):
            was, now = before.get(package), after.get(package)
            if was is None or now is None or was.sha256 != now.sha256:
                was, now = (p.version if p else "none" for p in (was, now))
                lines.append(f"{name}: {package}: {was} -> {now}")
    return lines
