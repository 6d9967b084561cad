# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The locked files of this machine: each fetched once and named by its sha256.

All checkouts share the folder. A file enters it by rename, after its sha256 was checked, and is
checked again whenever it is used: the folder may be deleted, or damaged, at any time.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import hashlib
import http.client
import os
import pathlib
import re
import shutil
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from toolchains.locks.errors import LocksError

MIRROR = "AITER_ATTN_MIRROR"
_ATTEMPTS = 2
_AT_ONCE = 8
_TIMEOUT_SECONDS = 60
_STALE_SECONDS = 3600
# Paths in the cache folder stand in rc files, run paths and URLs, unquoted.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/_.,+@=~-]+")


@dataclasses.dataclass(frozen=True)
class File:
    """A locked file. `name` is for messages; `urls()` gives the places to look, best first."""

    sha256: str
    name: str
    urls: Callable[[], Iterable[str]] = dataclasses.field(compare=False)


@dataclasses.dataclass(frozen=True)
class Failure:
    """Why a file could not be had; `answered`: some place was in reach, and lacks it."""

    reason: str
    answered: bool


class _Unreachable(Exception):
    """A server that does not answer, or not now."""


class _Lacking(Exception):
    """A server that answers, and has not the file that is locked."""


def cache_folder(environ: Mapping[str, str]) -> str:
    """Returns the absolute folder of bazelw's set-ups and of the store."""
    chosen = environ.get("BAZELW_CACHE")
    if not chosen:
        base = environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        chosen = os.path.join(base, "bazelw")
    folder = os.path.abspath(chosen)
    if not _PLAIN_PATH.fullmatch(folder):
        raise LocksError(
            f"the cache folder {folder!r} holds a character that is not one of letters, digits "
            "and /_.,+@=~-; set BAZELW_CACHE to another folder"
        )
    return folder


def mirror_url(environ: Mapping[str, str]) -> str | None:
    """Returns AITER_ATTN_MIRROR as a URL without a trailing slash, None where it is not set."""
    mirror = environ.get(MIRROR, "").rstrip("/")
    if mirror and not re.match(r"[a-z]+://|/", mirror):
        raise LocksError(f"{MIRROR} is {mirror!r}; it may be a URL or an absolute folder")
    return f"file://{urllib.parse.quote(mirror)}" if mirror.startswith("/") else mirror or None


def _sha256(path: pathlib.Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _read(url: str, file: File, part: str) -> None:
    """Writes what `url` serves to `part`. Raises _Unreachable, _Lacking."""
    request = urllib.request.Request(url, headers={"User-Agent": "aiter-attn"})
    try:
        with (
            urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer,
            open(part, "wb") as f,
        ):
            shutil.copyfileobj(answer, f, 1 << 20)
            # What is left of the length that a server announced; others have no such attribute.
            if getattr(answer, "length", None):
                raise _Unreachable("the connection broke off")
    except urllib.error.HTTPError as e:
        raise (_Unreachable if e.code >= 500 else _Lacking)(f"HTTP {e.code} {e.reason}") from e
    except (OSError, http.client.HTTPException, ValueError) as e:
        reason = getattr(e, "reason", e)
        if url.startswith("file:"):
            raise _Lacking(f"no such file ({reason})") from e
        raise _Unreachable(str(reason) or type(reason).__name__) from e
    got = _sha256(pathlib.Path(part))
    if got != file.sha256:
        raise _Lacking(f"its sha256 is {got}, not the locked {file.sha256}")


class Store:
    """The folder of locked files below the cache folder of `environ`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.folder = pathlib.Path(cache_folder(environ), "files")
        self._mirror = mirror_url(environ)
        self._dead: dict[str, str] = {}

    def path(self, file: File) -> pathlib.Path:
        return self.folder / file.sha256

    def has(self, file: File) -> bool:
        path = self.path(file)
        return path.is_file() and _sha256(path) == file.sha256

    def _places(self, file: File) -> Iterator[str]:
        if self._mirror:
            yield f"{self._mirror}/{file.sha256}"
        yield from file.urls()

    def _try(self, url: str, file: File) -> None:
        host = urllib.parse.urlsplit(url).netloc
        if host in self._dead:
            raise _Unreachable(self._dead[host])
        handle, part = tempfile.mkstemp(prefix=".part-", dir=self.folder)
        os.close(handle)
        try:
            for left in reversed(range(_ATTEMPTS)):
                try:
                    _read(url, file, part)
                    os.chmod(part, 0o444)
                    return os.replace(part, self.path(file))
                except _Unreachable as e:
                    if not left:
                        # A server out of reach costs a time-out or two, not one for each file.
                        self._dead[host] = str(e)
                        raise
        finally:
            pathlib.Path(part).unlink(missing_ok=True)

    def _fetch_one(self, file: File) -> Failure | None:
        reasons, answered = [], False
        try:
            for url in self._places(file):
                try:
                    return self._try(url, file)
                except (_Unreachable, _Lacking) as e:
                    answered = answered or isinstance(e, _Lacking)
                    reasons.append(f"{url}: {e}")
        except LocksError as e:  # no mirror or index is known
            reasons.append(str(e))
        return Failure("; ".join(reasons), answered)

    def fetch(
        self, files: Iterable[File], show: Callable[[str], None] = lambda text: None
    ) -> dict[File, Failure]:
        """Brings files into the store. Returns those that cannot be had, with the reasons.

        `show` is told of the progress.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise LocksError(
                f"cannot write to the cache folder {self.folder} ({e.strerror}); "
                "set BAZELW_CACHE to a folder that you can write to"
            ) from e
        self._remove_stale_parts()
        missing = [file for file in dict.fromkeys(files) if not self.has(file)]
        failed: dict[File, Failure] = {}
        pool = concurrent.futures.ThreadPoolExecutor(_AT_ONCE)
        try:
            jobs = {pool.submit(self._fetch_one, file): file for file in missing}
            for number, job in enumerate(concurrent.futures.as_completed(jobs), 1):
                show(f"fetching: {number} of {len(jobs)} files")
                failure = job.result()
                if failure:
                    failed[jobs[job]] = failure
        finally:
            pool.shutdown(cancel_futures=True)
        return {file: failed[file] for file in missing if file in failed}

    def _remove_stale_parts(self) -> None:
        """Removes what a fetch that was killed left behind."""
        for part in self.folder.glob(".part-*"):
            with contextlib.suppress(OSError):  # another fetch has removed or renamed it
                if time.time() - part.stat().st_mtime > _STALE_SECONDS:
                    part.unlink()

    def place(self, file: File, target: pathlib.Path) -> None:
        """Puts a copy of a file of the store at `target`, which belongs to the caller then."""
        shutil.copyfile(self.path(file), target)


def tell(failed: Mapping[File, Failure]) -> str:
    """Says which files could not be had, with the first one's reasons."""
    first, failure = next(iter(failed.items()))
    others = f" (and {len(failed) - 1} more files)" if len(failed) > 1 else ""
    return f"cannot fetch {first.name}{others}: {failure.reason}"


def identity(digests: Mapping[str, str] | Sequence[tuple[str, str]]) -> str:
    """Returns a sha256, 64 hex digits, over names and digests; their order does not matter."""
    lines = sorted(dict(digests).items())
    return hashlib.sha256("".join(f"{n} {d}\n" for n, d in lines).encode()).hexdigest()
