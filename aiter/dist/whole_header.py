# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes a public header for a release, in which each file lies in a folder of its own, so that
none can include another. Headers of the library are put in the place of their #include, and the
namespace of the build is the default."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from absl import app, flags

_OUT = flags.DEFINE_string("out", None, "the header to write", required=True)
_NAMESPACE = flags.DEFINE_string("namespace", None, "prefix of the symbols", required=True)
_INCLUDES = flags.DEFINE_multi_string("include", [], "a header that may be included")

_INCLUDE = re.compile(r'^#include "aiter/(.+)"$', re.MULTILINE)
_DEFAULT = "#define AITER_ATTN_NAMESPACE aiter\n"


def whole(text: str, headers: Mapping[str, str]) -> str:
    """A header's text with the texts of those that it includes, each once, by its name in aiter/.

    Raises KeyError for one that is not among them.
    """
    there: set[str] = set()

    def put(match: re.Match[str]) -> str:
        name = match[1]
        if name in there:
            return ""
        there.add(name)
        return _INCLUDE.sub(put, headers[name]).rstrip("\n")

    return _INCLUDE.sub(put, text)


def in_namespace(text: str, namespace: str) -> str:
    """A whole header whose functions are those of a namespace, where no macro says otherwise."""
    if text.count(_DEFAULT) != 1:
        raise ValueError(f"the header has {text.count(_DEFAULT)} lines {_DEFAULT!r}, want one")
    return text.replace(_DEFAULT, _DEFAULT.replace("aiter\n", f"{namespace}\n"))


def main(arguments: Sequence[str]) -> None:
    (header,) = arguments[1:]
    headers = {Path(file).name: Path(file).read_text("utf-8") for file in _INCLUDES.value}
    text = in_namespace(whole(Path(header).read_text("utf-8"), headers), _NAMESPACE.value)
    Path(_OUT.value).write_text(text, "utf-8")


if __name__ == "__main__":
    app.run(main)
