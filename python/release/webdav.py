# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A WebDAV server that releases go to.

It has to take GET, PUT, MKCOL, MOVE and DELETE, as nginx does with
`dav_methods PUT DELETE MKCOL MOVE`. A folder that MKCOL makes is the lock: of two publishers only
one can make it.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from python.release.errors import ReleaseError
from toolchains.locks.web import hidden

# Seconds to connect, and between two pieces of an answer.
_TIMEOUT = (20, 120)
# A lock whose holder has not changed for so long is of a publisher that was killed: the index is
# written within a few requests.
_LEASE_SECONDS = 30.0
# Before a server in trouble is asked again; twice as long before the next time.
_PAUSE_SECONDS = 0.5
_STEPS = {
    401: "access is refused; credentials stand in the URL as USER:PASSWORD@HOST, or in ~/.netrc",
    403: "access is refused; use credentials that may write, in the URL as USER:PASSWORD@HOST or "
    "in ~/.netrc, or another URL",
    405: "the server does not take this method: allow PUT, DELETE, MKCOL and MOVE there (WebDAV)",
    409: "a folder above it is missing: make the folder that the URL names (MKCOL)",
    413: "the server takes no file of this size: raise its limit (nginx: client_max_body_size)",
    500: "the server is in trouble: look at its log, or let it make missing folders (nginx: "
    "create_full_put_path on); then run this again",
    501: "the server does not take this method: allow PUT, DELETE, MKCOL and MOVE there (WebDAV)",
    507: "the server's disk is full: free some space there and run this again",
}


class WebDav:
    """A Target."""

    def __init__(
        self, url: str, lease: float = _LEASE_SECONDS, pause: float = _PAUSE_SECONDS
    ) -> None:
        try:
            parts = urllib.parse.urlsplit(url)
            port = f":{parts.port}" if parts.port else ""
        except ValueError as error:
            raise ReleaseError(f"--to={hidden(url)}: {hidden(str(error))}") from error
        if not parts.hostname or parts.query or parts.fragment:
            raise ReleaseError(
                f"--to={hidden(url)}: want a host and a path, like https://host.example/attn"
            )
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self._url = f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}/"
        self.shown = self._url
        self._lease = lease
        self._session = requests.Session()
        self._session.headers["User-Agent"] = "aiter-attn"
        # The file that is read back is to be the server's own, with the very bytes.
        self._session.headers["Accept-Encoding"] = "identity"
        self._session.headers["Cache-Control"] = "no-cache"
        if parts.username is not None:
            self._session.auth = (
                urllib.parse.unquote(parts.username),
                urllib.parse.unquote(parts.password or ""),
            )
        retry = Retry(
            3,
            backoff_factor=pause,
            status_forcelist=(429, 500, 502, 503, 504),
            allowed_methods=None,
            raise_on_status=False,
        )
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=retry))

    def _ask(self, method: str, path: str, **options: Any) -> requests.Response:
        try:
            return self._session.request(
                method,
                self._url + urllib.parse.quote(path),
                timeout=_TIMEOUT,
                allow_redirects=False,
                **options,
            )
        except requests.RequestException as error:
            raise ReleaseError(
                f"{method} {self._url}{path}: {hidden(str(error))}; check the URL and the "
                "network, and run this again: files that are there are not sent again"
            ) from error

    def _refused(self, answer: requests.Response, path: str) -> ReleaseError:
        status = answer.status_code
        step = _STEPS.get(status, "the server is in trouble; run this again later")
        if answer.is_redirect:
            step = f"it redirects to {hidden(answer.headers['Location'])}; give that URL"
        return ReleaseError(
            f"{answer.request.method} {self._url}{path}: HTTP {status} {answer.reason}: {step}"
        )

    def _do(self, method: str, path: str, allowed: tuple[int, ...], **options: Any) -> int:
        with self._ask(method, path, **options) as answer:
            if answer.status_code not in allowed:
                raise self._refused(answer, path)
            return answer.status_code

    @contextlib.contextmanager
    def _get(self, path: str) -> Iterator[Iterator[bytes] | None]:
        with self._ask("GET", path, stream=True) as answer:
            if answer.status_code in (404, 410):
                yield None
            elif answer.status_code == 200:
                yield self._pieces(answer, path)
            else:
                raise self._refused(answer, path)

    def _pieces(self, answer: requests.Response, path: str) -> Iterator[bytes]:
        try:
            yield from answer.iter_content(1 << 20)
        except requests.RequestException as error:
            raise ReleaseError(
                f"GET {self._url}{path}: the answer broke off ({hidden(str(error))}); run this "
                "again"
            ) from error

    def read(self, path: str) -> bytes | None:
        with self._get(path) as pieces:
            return None if pieces is None else b"".join(pieces)

    def digest(self, path: str) -> str | None:
        with self._get(path) as pieces:
            if pieces is None:
                return None
            digest = hashlib.sha256()
            for piece in pieces:
                digest.update(piece)
            return digest.hexdigest()

    def _put(self, path: str, contents: Path | bytes) -> requests.Response:
        if isinstance(contents, bytes):
            return self._ask("PUT", path, data=contents)
        with contents.open("rb") as stream:
            return self._ask("PUT", path, data=stream)

    def write(self, path: str, contents: Path | bytes) -> None:
        answer = self._put(path, contents)
        # Servers differ on a missing folder: 409, says the standard; 500, says nginx.
        if answer.status_code in (404, 409, 500):
            self._make_folders(path)
            answer = self._put(path, contents)
        if answer.status_code not in (200, 201, 204):
            raise self._refused(answer, path)

    def _make_folders(self, path: str) -> None:
        parts = path.split("/")[:-1]
        for count in range(1, len(parts) + 1):
            # 405: it is there. 409: one above it is missing, which PUT will say.
            self._do("MKCOL", "/".join(parts[:count]) + "/", (201, 301, 405, 409))

    @contextlib.contextmanager
    def lock(self, path: str) -> Iterator[Callable[[str, bytes], bool]]:
        """A folder on the server with the holder's token in it.

        One that a killed publisher left behind is taken over after `lease` seconds. So is that of
        one that stalls for so long: it writes no more then, as its new file went with the folder.
        """
        token = secrets.token_hex(16)
        self._acquire(path, token.encode())

        def is_held() -> bool:
            return self.read(f"{path}/holder") == token.encode()

        def replace(name: str, contents: bytes) -> bool:
            scratch = f"{path}/{token}"
            self.write(scratch, contents)
            # In this holder's folder, if it is its own now; else in that of the next one.
            if not is_held():
                self._do("DELETE", scratch, (200, 204, 404))
                return False
            self._make_folders(name)
            headers = {"Destination": self._url + urllib.parse.quote(name), "Overwrite": "T"}
            return self._do("MOVE", scratch, (200, 201, 204, 404), headers=headers) != 404

        try:
            yield replace
        finally:
            if is_held():
                self._do("DELETE", f"{path}/", (200, 204, 404))

    def _acquire(self, path: str, token: bytes) -> None:
        start = since = time.monotonic()
        seen: bytes | None = None
        # MKCOL: 405 where the folder is there.
        while self._do("MKCOL", f"{path}/", (201, 405)) == 405:
            holder, now = self.read(f"{path}/holder"), time.monotonic()
            if holder != seen:
                seen, since = holder, now
            elif now - since > self._lease:
                self._do("DELETE", f"{path}/", (200, 204, 404))
                since = now
            if now - start > 10 * self._lease:
                raise ReleaseError(
                    f"{self._url}{path} was held by others for {now - start:.0f} s; run this again "
                    "when they are done"
                )
            time.sleep(0.2)
        self.write(f"{path}/holder", token)
