# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Looks at the URL of the cache server before Bazel does.

With a URL that it does not understand Bazel builds without a cache, and says so in words of another
subject: TLS, for a URL without a scheme.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from toolchains.locks.errors import LocksError

_STARTS = ("http://", "https://", "grpc://", "grpcs://", "unix:/")
_FLAG = "--remote_cache"


def _in_arguments(arguments: Sequence[str]) -> Iterator[str]:
    options = list(arguments)[: arguments.index("--") if "--" in arguments else None]
    for at, option in enumerate(options):
        if option == _FLAG:
            yield "".join(options[at + 1 : at + 2])
        elif option.startswith(f"{_FLAG}="):
            yield option.partition("=")[2]


def _in_rc(text: str) -> Iterator[str]:
    """The values in a .bazelrc, for any command and configuration."""
    for line in text.splitlines():
        words = re.split(r"\s+#", line)[0].split()
        if words and not words[0].startswith("#"):
            yield from _in_arguments([word.strip("'\"") for word in words])


def check(arguments: Sequence[str], rc: str, debian: bool) -> None:
    """Raises LocksError for a cache URL that Bazel would not use.

    `arguments` are Bazel's, `rc` is the text of rc files; `debian`: the locked Bazel, whose
    Java cannot do TLS the way that gRPC wants it. Credentials in the URL are not shown.
    """
    for url in [*_in_rc(rc), *_in_arguments(arguments)]:
        what = ""
        # An empty one is no cache.
        if url and not url.startswith(_STARTS):
            what = f"not the URL of a cache; it may start with {', '.join(_STARTS)}"
        elif debian and url.startswith("grpcs:"):
            what = (
                "the Bazel of Debian packages speaks gRPC without TLS only; use https://, a "
                "grpc:// proxy on this machine, or put bazelisk on PATH"
            )
        if what:
            from toolchains.locks import web  # slow to import

            raise LocksError(f"{_FLAG}={web.shown(url)}: {what}")
