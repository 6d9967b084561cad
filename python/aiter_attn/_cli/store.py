# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Where the bytes of kernels come from: the providers of the library's store."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypedDict

from aiter_attn import _C

__all__ = ["Found", "Provider", "find", "lines", "providers"]

_NO_KEY = "0" * 64
_ABSENT = ": does not have it"
_LATER = "at its first use"
_ASKED = "is asked for it"  # a server, which may lack it
_OTHER = re.compile(r"(.*?): its (plain compile|compile by .*), key ([0-9a-f]{64}): ")


class Provider(TypedDict):
    """A provider of the store. `refused` is the reason why it serves nothing; "": it serves."""

    name: str
    kernels: int
    plain: int  # of these, how many are served by their plain compiles
    refused: str


class Found(NamedTuple):
    """The place of the object that a kernel's launch takes. provider: None: there is none. key: the
    kernel's, that of its plain compile, or that of its compile by a compiler of the machine.
    others: the answers of providers that do not have it. is_made: the provider compiles it first.
    is_plain: it is the plain compile. is_fetched: the provider, a server, is asked for it first."""

    provider: str | None
    key: str | None
    others: tuple[str, ...]
    is_made: bool
    is_plain: bool = False
    is_fetched: bool = False

    @property
    def is_there(self) -> bool:
        """It is to be neither made nor fetched."""
        return self.provider is not None and not self.is_made and not self.is_fetched


def find(key: str) -> Found:
    """The place of the object that the kernel of a key is served by."""
    provider, text = _C.find_code_object(key)
    told = text.splitlines()
    if provider is None:
        return Found(None, None, tuple(told), False)

    def found(number: int, of: str, answer: str, is_plain: bool) -> Found:
        is_fetched = answer.startswith(_ASKED)
        is_made = answer.endswith(_LATER) and not is_fetched
        return Found(provider, of, tuple(told[:number]), is_made, is_plain, is_fetched)

    for i, line in enumerate(told):
        other = _OTHER.match(line)
        if other and other[1] == provider:
            return found(i, other[3], line[other.end() :], other[2] == "plain compile")
    start = f"{provider}: "
    first = next(i for i, line in enumerate(told) if line.startswith(start))
    return found(first, key, told[first].removeprefix(start), False)


def providers(found: Mapping[str, Found]) -> list[Provider]:
    """All providers in the order in which they are asked, with the kernels that come from them."""
    counts = collections.Counter(place.provider for place in found.values())
    plain = collections.Counter(place.provider for place in found.values() if place.is_plain)
    listed: list[Provider] = []
    # No kernel has this key: a provider that says more than that it lacks it serves nothing.
    for line in _C.find_code_object(_NO_KEY)[1].splitlines():
        name = line.removesuffix(_ABSENT)
        if name != line:
            listed.append(
                {"name": name, "kernels": counts[name], "plain": plain[name], "refused": ""}
            )
        else:
            name, _, why = line.partition("': ")
            listed.append({"name": name + "'", "kernels": 0, "plain": 0, "refused": why})
    return listed


def lines(listed: list[Provider], missing: int) -> Iterator[str]:
    """The providers for people. missing: the kernels that none has."""
    for provider in listed:
        plain = f", {provider['plain']} of them plain compiles" if provider["plain"] else ""
        served = _counted(provider["kernels"]) + plain
        yield f"{provider['name']}: {provider['refused'] or served}"
    if missing:
        yield f"nowhere: {_counted(missing)}; aiter-attn explain tells a call's and the next step"


def _counted(kernels: int) -> str:
    return f"{kernels} code object{'' if kernels == 1 else 's'}"
