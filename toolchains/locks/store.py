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
import os
import pathlib
import re
import shutil
import tempfile
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping

from toolchains.locks import web
from toolchains.locks.environment import cache_folder
from toolchains.locks.errors import LocksError, explained
from toolchains.locks.whole import PREFIX, whole

MIRROR = "AITER_ATTN_MIRROR"
# The step for a machine without a network.
OFFLINE = (
    f"; without a network set {MIRROR} to a folder that ./bazelw --vendor DIR wrote where there "
    "is one"
)
OTHER_CACHE = ", or set BAZELW_CACHE to a folder that you can write to"
_AT_ONCE = 8
_STALE_SECONDS = 3600


@dataclasses.dataclass(frozen=True)
class File:
    """A locked file. `name` is for messages; `urls()` gives the places to look, best first."""

    sha256: str
    name: str
    urls: Callable[[], Iterable[str]] = dataclasses.field(compare=False)


@dataclasses.dataclass(frozen=True)
class Fetched:
    """A file in the store: `suffix` of the name that it is placed by, and `about` to print."""

    file: File
    suffix: str
    about: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Failure:
    """Why a file could not be had; `answered`: some place was in reach, and has it not."""

    reason: str
    answered: bool


def mirror_url(environ: Mapping[str, str]) -> str | None:
    """Returns AITER_ATTN_MIRROR as a URL without a trailing slash, None where it is not set."""
    mirror = environ.get(MIRROR, "").rstrip("/")
    if mirror and not re.match(r"[a-z]+://|/", mirror):
        raise LocksError(f"{MIRROR} is {mirror!r}; it may be a URL or an absolute folder")
    return f"file://{urllib.parse.quote(mirror)}" if mirror.startswith("/") else mirror or None


def _sha256(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as f:
        while piece := f.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _write(path: pathlib.Path, pieces: Iterable[bytes]) -> None:
    with path.open("wb") as f:
        f.writelines(pieces)


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

    def _places(self, file: File, reasons: list[str]) -> Iterator[str]:
        """Yields the URLs to try; that no mirror or index is known is a reason."""
        if self._mirror:
            yield f"{self._mirror}/{file.sha256}"
        try:
            yield from file.urls()
        except LocksError as e:
            reasons.append(str(e))

    def _take(self, url: str, file: File) -> None:
        """Brings a file into the store from one place. Raises web.Trouble."""
        server = "/".join(url.split("/", 3)[:3])
        if server in self._dead:
            raise web.Unavailable(self._dead[server])
        try:
            with whole(self.path(file), OTHER_CACHE) as part:
                web.fetch(url, lambda pieces: _write(part, pieces))
                got = _sha256(part)
                if got != file.sha256:
                    raise web.Lacking(f"its sha256 is {got}, not the locked {file.sha256}")
                part.chmod(0o444)
        except web.Unavailable as e:
            # A server out of reach costs a time-out or two, not one for each file.
            self._dead[server] = str(e)
            raise

    def _try(self, file: File) -> Failure | None:
        reasons: list[str] = []
        answered = False
        for url in self._places(file, reasons):
            try:
                return self._take(url, file)
            except web.Trouble as e:
                answered = answered or isinstance(e, web.Lacking)
                reasons.append(f"{web.shown(url)}: {e}")
        return Failure("; ".join(reasons), answered)

    def fetch(
        self, files: Iterable[File], show: Callable[[str], None] = lambda text: None
    ) -> dict[File, Failure]:
        """Brings files into the store. Returns those that cannot be had, with the reasons.

        `show` is told of the progress. Raises LocksError where the store cannot be written to.
        """
        with explained(f"write to the cache folder {self.folder}", OTHER_CACHE):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._remove_stale_parts()
        missing = [file for file in dict.fromkeys(files) if not self.has(file)]
        failed: dict[File, Failure] = {}
        pool = concurrent.futures.ThreadPoolExecutor(_AT_ONCE)
        try:
            jobs = {pool.submit(self._try, file): file for file in missing}
            for number, job in enumerate(concurrent.futures.as_completed(jobs), 1):
                show(f"fetching: {number} of {len(jobs)} files")
                failure = job.result()
                if failure:
                    failed[jobs[job]] = failure
        finally:
            pool.shutdown(cancel_futures=True)
        return {file: failed[file] for file in missing if file in failed}

    def fetch_one(self, file: File, step: str) -> File:
        """Brings one file into the store. Raises LocksError that ends with `step`, the next one."""
        failed = self.fetch([file])
        if failed:
            raise LocksError(f"{tell(failed)}. {step}")
        return file

    def _remove_stale_parts(self) -> None:
        """Removes the files that a killed fetch left behind.

        Ages are told by the clock that files of the folder are stamped with. This process may have
        another one, and files that others fetch right now are not to be taken for old.
        """
        parts = list(self.folder.glob(f"{PREFIX}*"))
        if not parts:
            return
        with contextlib.suppress(OSError):  # a folder that cannot be written to keeps its parts
            with tempfile.NamedTemporaryFile(prefix=PREFIX, dir=self.folder) as stamp:
                now = os.fstat(stamp.fileno()).st_mtime
            for part in parts:
                with contextlib.suppress(OSError):  # another fetch has removed or renamed it
                    if now - part.stat().st_mtime > _STALE_SECONDS:
                        part.unlink()

    def place(self, file: File, target: pathlib.Path) -> None:
        """Puts a copy of a file of the store at `target`, which belongs to the caller then."""
        with whole(target) as part:
            shutil.copyfile(self.path(file), part)


def tell(failed: Mapping[File, Failure]) -> str:
    """Says which files could not be had, with the first one's reasons."""
    first, failure = next(iter(failed.items()))
    others = f" (and {len(failed) - 1} more files)" if len(failed) > 1 else ""
    return f"cannot fetch {first.name}{others}: {failure.reason}"
