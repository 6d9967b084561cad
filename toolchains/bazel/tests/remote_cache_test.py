# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""URLs of cache servers that Bazel would quietly not use are refused, wherever they stand."""

from __future__ import annotations

import pytest

from toolchains.bazel import remote_cache
from toolchains.locks.errors import LocksError


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://127.0.0.1:8080/path",
        "https://cache.example",
        "grpc://cache.example:8980",
        "unix:/run/cache.sock",
    ],
)
def test_urls_of_caches(url: str) -> None:
    remote_cache.check(["build", f"--remote_cache={url}", "//:all"], "", debian=True)
    remote_cache.check(["build", "--remote_cache", url, "//:all"], "", debian=True)
    remote_cache.check([], f"build --remote_cache={url}", debian=True)


@pytest.mark.parametrize(
    "url", ["ftp://cache.example", "cache.example:8980", "htp://x", "http:/x", "/var/cache"]
)
def test_anything_else(url: str) -> None:
    message = r"--remote_cache=.*http://, https://, grpc://, grpcs://, unix:/"
    for arguments, rc in (
        (["build", f"--remote_cache={url}"], ""),
        (["build", "--remote_cache", url], ""),
        ([], f"# mine\nbuild:x --jobs=2 --remote_cache={url}  # there\n"),
        ([], f"common --remote_cache '{url}'\n"),
    ):
        with pytest.raises(LocksError, match=message) as e:
            remote_cache.check(arguments, rc, debian=False)
        assert url in str(e.value)


def test_credentials_are_not_shown() -> None:
    with pytest.raises(LocksError) as e:
        remote_cache.check(["--remote_cache=ftp://ci:secret@cache.example"], "", debian=False)
    assert "secret" not in str(e.value) and "cache.example" in str(e.value)


def test_grpc_over_tls_needs_another_bazel() -> None:
    arguments = ["--remote_cache=grpcs://cache.example"]
    remote_cache.check(arguments, "", debian=False)
    with pytest.raises(LocksError, match=r"without TLS.*bazelisk"):
        remote_cache.check(arguments, "", debian=True)


def test_what_is_no_option_of_bazel() -> None:
    remote_cache.check(["run", "//:x", "--", "--remote_cache=whatever"], "", debian=True)
    remote_cache.check([], "# build --remote_cache=whatever\n", debian=True)
    remote_cache.check([], "build --jobs=2  # not --remote_cache=whatever\n", debian=True)
