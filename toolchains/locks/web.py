# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Reads URLs, and tells apart why one gives nothing.

Credentials stand in a URL as USER:PASSWORD@ before the host, those of a proxy in http_proxy and
https_proxy. No message shows them.
"""

from __future__ import annotations

import base64
import http.client
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from typing import TypeVar

_TIMEOUT_SECONDS = 60
# A server that asks for a longer pause than this is left alone.
_LONGEST_PAUSE_SECONDS = 10
_REFUSALS = {
    401: "access is refused; credentials stand in the URL, as USER:PASSWORD@HOST",
    403: "access is refused; credentials stand in the URL, as USER:PASSWORD@HOST",
    407: "the proxy refuses access; its credentials stand in http_proxy and https_proxy, as "
    "USER:PASSWORD@HOST",
}
_T = TypeVar("_T")


class Trouble(Exception):
    """Why a URL gives nothing; without the URL."""


class Lacking(Trouble):
    """The server answers, and has no such file."""


class Refused(Trouble):
    """The server answers, and does not give it."""


class Unavailable(Trouble):
    """The server does not answer, or not now: another attempt may help."""

    def __init__(self, reason: str, pause: int = 0) -> None:
        super().__init__(reason)
        self.pause = pause


def hidden(text: str) -> str:
    """A text without the credentials of any URL in it, up to the last @ before its path."""
    return re.sub(r"//[^/\s]*@", "//***@", text)


def _hidden(url: str, text: str) -> str:
    user = re.match(r"\w+://([^/]*)@", url)
    return text.replace(user[1], "***") if user else text


def shown(url: str) -> str:
    """Returns a URL as messages show it."""
    return _hidden(url, url)


def _request(url: str) -> urllib.request.Request:
    parts = urllib.parse.urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    plain = parts._replace(netloc=host).geturl() if at else url
    request = urllib.request.Request(plain, headers={"User-Agent": "aiter-attn"})
    if at:
        credentials = base64.b64encode(urllib.parse.unquote(user).encode()).decode()
        # Not for the server that this one redirects to.
        request.add_unredirected_header("Authorization", f"Basic {credentials}")
    return request


def _of_status(e: urllib.error.HTTPError) -> Trouble:
    status = f"HTTP {e.code} {e.reason}"
    if e.code in (404, 410):
        return Lacking(status)
    if e.code in _REFUSALS:
        return Refused(f"{status}: {_REFUSALS[e.code]}")
    if e.code == 429 or e.code >= 500:
        seconds = e.headers.get("Retry-After", "")
        pause = int(seconds) if seconds.isdigit() else 0
        when = f"in {pause} seconds" if pause else "later"
        return Unavailable(f"{status}; try again {when}", pause)
    return Refused(status)


def _of_error(url: str, e: Exception) -> Trouble:
    reason = getattr(e, "reason", e)
    if url.startswith("file:"):
        if isinstance(reason, (FileNotFoundError, NotADirectoryError)):
            return Lacking(f"no such file ({reason})")
        return Refused(f"cannot be read ({reason})")
    tunnel = re.search(r"Tunnel connection failed: (407.*)", str(reason))
    if tunnel:
        return Refused(f"HTTP {tunnel[1]}: {_REFUSALS[407]}")
    return Unavailable(_hidden(url, str(reason)) or type(reason).__name__)


def _pieces(url: str) -> Iterator[bytes]:
    try:
        with urllib.request.urlopen(_request(url), timeout=_TIMEOUT_SECONDS) as answer:
            while piece := answer.read(1 << 20):
                yield piece
            # The rest of the length that a server announced; others have no such attribute.
            if getattr(answer, "length", None):
                raise Unavailable("the connection broke off")
    except urllib.error.HTTPError as e:
        raise _of_status(e) from e
    except (OSError, http.client.HTTPException, ValueError) as e:
        raise _of_error(url, e) from e


def fetch(url: str, take: Callable[[Iterator[bytes]], _T]) -> _T:
    """Returns what `take` makes of the contents of `url`, which it gets in pieces.

    Where the contents break off, or a server is busy, `take` is called a second time, with all of
    them. Raises Trouble.
    """
    try:
        return take(_pieces(url))
    except Unavailable as e:
        if e.pause > _LONGEST_PAUSE_SECONDS:
            raise
        time.sleep(e.pause)
    return take(_pieces(url))
