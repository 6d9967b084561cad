# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Where releases go: a folder or a WebDAV server, behind one face."""

from __future__ import annotations

import contextlib
import os
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from python.release.errors import ReleaseError
from python.release.folder import Folder
from python.release.webdav import WebDav


class Target(Protocol):
    """A place for files. Paths are relative to it and have "/" in them."""

    # As messages show it, without credentials.
    shown: str

    def read(self, path: str) -> bytes | None:
        """The bytes of a file, or None where it is not there."""

    def digest(self, path: str) -> str | None:
        """The sha256 of a file's bytes, read back, or None where it is not there."""

    def write(self, path: str, contents: Path | bytes) -> None:
        """Writes a file. Another reader may meanwhile see any part of it."""

    def lock(self, path: str) -> contextlib.AbstractContextManager[Callable[[str, bytes], bool]]:
        """Keeps other publishers out.

        Gives a function replace(path, contents), which writes a file of which readers see the old
        bytes or the new; or, where the lock was lost, writes nothing and returns False.
        """


def parse(to: str, working_folder: Path) -> Target:
    """The target that the user names: a folder, or a URL."""
    scheme = urllib.parse.urlsplit(to).scheme
    if not to:
        raise ReleaseError("--to is empty; it may be a folder, or an http or https URL of WebDAV")
    if not scheme:
        return Folder(working_folder / os.path.expanduser(to))
    if scheme in ("http", "https"):
        return WebDav(to)
    raise ReleaseError(
        f"--to has the scheme {scheme!r}; it may be a folder, or an http or https URL of a WebDAV "
        "server"
    )
