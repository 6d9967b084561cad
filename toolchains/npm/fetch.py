# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Fetches locked npm packages.

The registry is AITER_ATTN_NPM_REGISTRY, else the one that this machine's npm is configured with,
else, where there is no npm, the default that npm itself has, read from its Debian package.

lock.json is kept by hand: {"packages": {NAME: {"version", "sha256"}}}, the digest of the .tgz.
"""

from __future__ import annotations

import io
import os
import pathlib
import re
import subprocess
import tarfile
from collections.abc import Iterator, Mapping

from toolchains.debian import fetch as debian
from toolchains.locks import entries, store
from toolchains.locks.errors import LocksError

VARIABLE = "AITER_ATTN_NPM_REGISTRY"
LOCK = pathlib.Path(__file__).absolute().parent / "lock.json"
_SETTINGS = "./usr/share/nodejs/npm/lib/utils/config/definitions.js"
_DEFAULT = re.compile(r"define\('registry',.*?default: '([^']+)'", re.S)


def _npm_default(environ: Mapping[str, str]) -> str:
    """Returns npm's default registry, from the definition of the setting."""
    (file,) = debian.fetch("npm", environ=environ).values()
    command = ["dpkg-deb", "--fsys-tarfile", store.Store(environ).path(file)]
    try:
        data = subprocess.run(command, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(data)) as members:
            text = members.extractfile(_SETTINGS).read().decode()
        return _DEFAULT.search(text)[1]
    except (OSError, subprocess.CalledProcessError, tarfile.TarError, KeyError, TypeError) as e:
        raise LocksError(
            f"no npm here to ask for its registry, and npm's Debian package does not say it "
            f"({e}); set {VARIABLE} to a registry's URL"
        ) from e


def registry(environ: Mapping[str, str]) -> str:
    """Returns the URL of the registry without a trailing slash."""
    url = environ.get(VARIABLE)
    if not url:
        try:
            got = subprocess.run(
                ["npm", "config", "get", "registry"], capture_output=True, text=True
            )
            url = got.stdout.strip() if got.returncode == 0 else ""
        except FileNotFoundError:
            url = ""
    if not url or not url.startswith("http"):
        url = _npm_default(environ)
    return url.rstrip("/")


def locked() -> dict[str, dict[str, str]]:
    """Returns name -> version and sha256. Raises LocksError for an entry that cannot be used."""
    return entries.read(
        LOCK,
        lambda data: data["packages"],
        {"version": r"[A-Za-z0-9.+-]+", "sha256": entries.SHA256},
        "restore the file",
    )


def file(name: str, entry: Mapping[str, str], environ: Mapping[str, str]) -> store.File:
    def urls() -> Iterator[str]:
        yield f"{registry(environ)}/{name}/-/{name.split('/')[-1]}-{entry['version']}.tgz"

    return store.File(entry["sha256"], f"{name} {entry['version']}", urls)


def fetch(name: str, environ: Mapping[str, str] = os.environ) -> store.File:
    """Brings a package into the store."""
    packages = locked()
    if name not in packages:
        raise LocksError(f"{LOCK}: no package {name!r}; there are {', '.join(packages)}")
    return store.Store(environ).fetch_one(
        file(name, packages[name], environ),
        f"Check the network, or set {VARIABLE} to a registry's URL{store.OFFLINE}",
    )


def fetched(name: str) -> list[store.Fetched]:
    """A package, for toolchains/locks/fetch.py."""
    return [store.Fetched(fetch(name), ".tgz", {"name": name})]
