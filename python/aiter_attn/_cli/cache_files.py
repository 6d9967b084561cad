# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The files of the user's cache, as the library keeps them (aiter/runtime/store/cache.h).

KEY.object is an object behind a head. KEY.new is locked (flock) by who makes one, KEY.new.DIGITS by
who writes it. KEY.refused is one that was not believed, and KEY.failed says why one could not be
made.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import re
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

__all__ = ["MOST_BYTES", "Busy", "CacheFolder", "Entry", "Refused", "unpacked"]

MOST_BYTES = 256 << 20  # no object is larger
_HEAD = struct.Struct("<8s32s32sQ")
_MAGIC = b"ATTNOBJ1"
_NAME = re.compile(r"([0-9a-f]{64})\.(object|new|new\.[0-9a-f]{16}|refused|failed)")
_OPEN = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Refused(Exception):
    """A file or folder that is not believed; the text is the reason."""


class Busy(Exception):
    """Another process writes the object."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A file of the cache. kind: object, new, new.DIGITS, refused or failed."""

    key: str
    kind: str
    size: int
    used: float  # seconds since the epoch

    @property
    def is_unfinished(self) -> bool:
        return self.kind.startswith("new")


def unpacked(key: str, data: bytes, digest: str | None) -> bytes:
    """The object in a file's bytes. digest: that of the object, where it is known.

    Raises Refused.
    """
    if len(data) < _HEAD.size or data[:8] != _MAGIC:
        raise Refused("is cut off, or no code object of a cache")
    _, named, said, size = _HEAD.unpack_from(data)
    if named.hex() != key:
        raise Refused(f"is the code object of the key {named.hex()}")
    if size != len(data) - _HEAD.size or size > MOST_BYTES:
        raise Refused(f"is cut off: it has {len(data)} bytes")
    found = hashlib.sha256(data[_HEAD.size :]).hexdigest()
    if expected := {said.hex(), digest or found} - {found}:
        raise Refused(f"has sha256 {found} instead of {min(expected)}")
    return data[_HEAD.size :]


class CacheFolder:
    """A cache, which need not be there yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self) -> None:
        """Raises Refused where the folder is a link, another user's, or others may write to it."""
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISDIR(found.st_mode):
            raise Refused(f"{self.path}: is no folder; name another in AITER_ATTN_CACHE_DIR")
        trusted = found.st_uid in (os.geteuid(), 0)
        if not trusted or (found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX):
            raise Refused(
                f"{self.path}: belongs to another user, or others may write to it; make it this "
                "user's alone: chmod 700"
            )

    def entries(self) -> list[Entry]:
        """Its files, those that were not used for the longest time first."""
        self.check()
        found = []
        with contextlib.suppress(FileNotFoundError):
            for file in os.scandir(self.path):
                match = _NAME.fullmatch(file.name)
                with contextlib.suppress(FileNotFoundError):  # it is gone by now
                    if match:
                        status = file.stat(follow_symlinks=False)
                        found.append(Entry(match[1], match[2], status.st_size, status.st_mtime))
        return sorted(found, key=lambda e: (e.used, e.key, e.kind))

    def file(self, entry: Entry) -> Path:
        return self.path / f"{entry.key}.{entry.kind}"

    def read(self, key: str, digest: str | None) -> bytes:
        """The whole file of an object that is believed. Raises Refused, or OSError."""
        path = self.path / f"{key}.object"
        if path.is_symlink():
            raise Refused("is a link")
        file = os.open(path, os.O_RDONLY | _OPEN)
        with os.fdopen(file, "rb") as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Refused("is no regular file")
            if status.st_uid not in (os.geteuid(), 0) or status.st_mode & 0o022:
                raise Refused("belongs to another user, or others may write to it")
            if status.st_size > MOST_BYTES + _HEAD.size:
                raise Refused(f"has {status.st_size} bytes, more than any code object")
            data = opened.read()
        unpacked(key, data, digest)
        return data

    @contextlib.contextmanager
    def locked(self, key: str) -> Iterator[int]:
        """The right to write, set aside or remove the key's object, and the file KEY.new to write
        to. Raises Busy where another process has it."""
        path = self.path / f"{key}.new"
        while True:
            file = os.open(path, os.O_RDWR | os.O_CREAT | _OPEN, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                named = path.lstat()
            except BlockingIOError as error:
                os.close(file)
                raise Busy(f"{path}: another process writes it; end it if it hangs") from error
            except FileNotFoundError:  # the one that had it before has renamed or removed it
                os.close(file)
                continue
            if named.st_ino == os.fstat(file).st_ino:
                break
            os.close(file)
        try:
            yield file
        finally:
            with contextlib.suppress(FileNotFoundError):
                if path.lstat().st_ino == os.fstat(file).st_ino:
                    path.unlink()
            os.close(file)

    def publish(self, key: str, data: bytes) -> None:
        """Puts the whole file of an object there. Raises Busy, OSError."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.check()
        with self.locked(key) as file:
            os.ftruncate(file, 0)
            written = 0
            while written < len(data):
                written += os.write(file, data[written:])
            os.fsync(file)
            (self.path / f"{key}.new").rename(self.path / f"{key}.object")

    def set_aside(self, key: str) -> None:
        """Raises Busy, OSError."""
        with self.locked(key):
            (self.path / f"{key}.object").rename(self.path / f"{key}.refused")

    def remove(self, entry: Entry) -> bool:
        """Whether it is gone: not where another process is writing it, or has used it meanwhile."""
        if entry.is_unfinished and entry.kind != "new":
            return self._remove_unlocked(self.file(entry))
        try:
            with self.locked(entry.key):
                if entry.kind == "new":
                    return True
                file = self.file(entry)
                with contextlib.suppress(FileNotFoundError):
                    if file.lstat().st_mtime != entry.used:
                        return False
                    file.unlink()
                return True
        except Busy:
            return False

    @staticmethod
    def _remove_unlocked(path: Path) -> bool:
        """Whether a file that is written is gone: not where its writer has it locked."""
        try:
            file = os.open(path, os.O_RDWR | _OPEN)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
        except BlockingIOError:
            return False
        finally:
            os.close(file)
        return True
