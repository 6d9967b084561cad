# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A folder that releases go to."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from python.release.errors import ReleaseError
from toolchains.locks.errors import LocksError, explained
from toolchains.locks.whole import whole

# The longest time that another publisher may hold the index. It takes milliseconds.
_PATIENCE_SECONDS = 60.0


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except LocksError as error:
        raise ReleaseError(str(error)) from error


class Folder:
    """A Target. A file is there as a whole or not at all, also after a power failure."""

    def __init__(self, root: Path, patience: float = _PATIENCE_SECONDS) -> None:
        self.root = root.absolute()
        self.shown = str(self.root)
        self._patience = patience
        with _told(), explained(f"make the folder {self.root}"):
            self.root.mkdir(parents=True, exist_ok=True)

    def read(self, path: str) -> bytes | None:
        with _told(), explained(f"read {self.root / path}"):
            try:
                return (self.root / path).read_bytes()
            except FileNotFoundError:
                return None

    def digest(self, path: str) -> str | None:
        with _told(), explained(f"read {self.root / path}"):
            try:
                with (self.root / path).open("rb") as stream:
                    return hashlib.file_digest(stream, "sha256").hexdigest()
            except FileNotFoundError:
                return None

    def write(self, path: str, contents: Path | bytes) -> None:
        target = self.root / path
        with _told():
            with explained(f"make the folder {target.parent}"):
                target.parent.mkdir(parents=True, exist_ok=True)
            with whole(target) as part, part.open("wb") as out:
                if isinstance(contents, bytes):
                    out.write(contents)
                else:
                    with contents.open("rb") as stream:
                        shutil.copyfileobj(stream, out)
                out.flush()
                os.fsync(out.fileno())

    @contextlib.contextmanager
    def lock(self, path: str) -> Iterator[Callable[[str, bytes], bool]]:
        """A lock of the kernel's, which ends with the process that holds it."""
        name = self.root / path
        with _told(), explained(f"write {name}"):
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            self._wait(descriptor, name)
            yield self._replace
        finally:
            os.close(descriptor)

    def _replace(self, path: str, contents: bytes) -> bool:
        self.write(path, contents)
        return True

    def _wait(self, descriptor: int, name: Path) -> None:
        end = time.monotonic() + self._patience
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise ReleaseError(
                        f"{name} is held by another process for {self._patience:.0f} s; end it "
                        "(`fuser` names it) and run this again"
                    ) from None
                time.sleep(0.05)
