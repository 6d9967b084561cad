# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Where the bytes of kernels come from: the providers of the library's store."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator
from typing import TypedDict

from aiter_attn import _C

__all__ = ["Provider", "found_in", "lines", "providers"]

_NO_KEY = "0" * 64
_ABSENT = ": does not have it"


class Provider(TypedDict):
    """A provider of the store. `refused` is the reason why it serves nothing; "": it serves."""

    name: str
    kernels: int
    refused: str


def found_in(keys: Iterable[str]) -> dict[str, str | None]:
    """The provider that each key's code object comes from; None: it is nowhere."""
    return {key: _C.find_code_object(key)[0] for key in set(keys)}


def providers(found: dict[str, str | None]) -> list[Provider]:
    """All providers in the order in which they are asked, with the kernels that come from them."""
    counts = collections.Counter(found.values())
    listed: list[Provider] = []
    # No kernel has this key: a provider that says more than that it lacks it serves nothing.
    for line in _C.find_code_object(_NO_KEY)[1].splitlines():
        name = line.removesuffix(_ABSENT)
        if name != line:
            listed.append({"name": name, "kernels": counts[name], "refused": ""})
        else:
            name, _, why = line.partition("': ")
            listed.append({"name": name + "'", "kernels": 0, "refused": why})
    return listed


def lines(listed: list[Provider], missing: int) -> Iterator[str]:
    """The providers for people. missing: the kernels that none has."""
    for provider in listed:
        yield f"{provider['name']}: {provider['refused'] or _counted(provider['kernels'])}"
    if missing:
        yield f"nowhere: {_counted(missing)}; aiter-attn explain tells a call's and the next step"


def _counted(kernels: int) -> str:
    return f"{kernels} code object{'' if kernels == 1 else 's'}"
