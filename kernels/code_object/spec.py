# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The spec of a code object, which says how it is made, and the key that follows from it.

A spec names everything that can change the object's bytes, and nothing else. Its canonical form is
JSON with sorted keys, no spaces, and ASCII alone: the very bytes of a .spec file. The key is their
sha256, so whoever has a spec has its key without reading it.

An object that is made of its source alone has no group. One that is compiled together with others
names them: the optimiser may decide otherwise where it sees more.

An object that comes as one, not compiled here, has another spec: its own digest.

A recipe is the part that the specs of many code objects share: all but the source and the arch.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

# Raised when the meaning of a field changes, so that no old key can name a new object.
FORMAT = 1


def _canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")


def header_tree_listing(files: Mapping[str, bytes]) -> bytes:
    """A line `SHA256 NAME` for each file by its logical name, sorted by name."""
    return b"".join(
        f"{hashlib.sha256(files[name]).hexdigest()} {name}\n".encode() for name in sorted(files)
    )


def header_tree_digest(files: Mapping[str, bytes]) -> str:
    """sha256 of the files' listing, as 64 hex digits; their order is no matter."""
    return hashlib.sha256(header_tree_listing(files)).hexdigest()


def group_digest(sources: Sequence[bytes]) -> str:
    """sha256 over the digests of sources that are compiled together, in order, as 64 hex digits."""
    digest = hashlib.sha256()
    for source in sources:
        digest.update(f"{hashlib.sha256(source).hexdigest()}\n".encode())
    return digest.hexdigest()


@dataclasses.dataclass(frozen=True)
class Recipe:
    """headers, toolchain: 64 hex digits; flags: as in CodeObjectSpec."""

    flags: tuple[str, ...]
    headers: str
    toolchain: str

    def serialised(self) -> bytes:
        return _canonical(dataclasses.asdict(self))

    @classmethod
    def parse(cls, data: bytes) -> Recipe:
        document = json.loads(data)
        return cls(**{**document, "flags": tuple(document["flags"])})

    def spec(
        self, source: bytes, arch: str, flags: Sequence[str] = (), group: Sequence[bytes] = ()
    ) -> CodeObjectSpec:
        """The spec of a source's code object, compiled with these flags behind the recipe's, and
        together with the sources of a group, which it is one of."""
        return CodeObjectSpec(
            arch=arch,
            flags=(*self.flags, *flags),
            group=group_digest(group) if group else "",
            headers=self.headers,
            source=hashlib.sha256(source).hexdigest(),
            toolchain=self.toolchain,
        )


@dataclasses.dataclass(frozen=True)
class CodeObjectSpec:
    """
    arch       gfx942; the compile has --offload-arch of it
    flags      every other flag of the compile but the names of input and output, in order, with
               paths in their logical form
    group      digest of the sources that are compiled together (group_digest); empty: the source
               alone, and the spec has no such field
    headers    digest of the header tree that the source is compiled against (header_tree_digest)
    source     sha256 of the source
    toolchain  identity of the compiler, its own headers and the device libraries
    """

    arch: str
    flags: tuple[str, ...]
    headers: str
    source: str
    toolchain: str
    group: str = ""

    def canonical(self) -> bytes:
        """The serialised spec. Its sha256 is the key.

        Raises ValueError where text is not printable ASCII, which others would escape otherwise.
        """
        fields = dataclasses.asdict(self)
        if not self.group:
            del fields["group"]
        for text in (*fields.pop("flags"), *fields.values()):
            if not (text.isascii() and text.isprintable()):
                raise ValueError(f"a code object's spec has {text!r}: not printable ASCII")
        return _canonical({"format": FORMAT, "flags": self.flags, **fields})

    def alone(self) -> CodeObjectSpec:
        """The spec of the object that the source's own compile gives."""
        return dataclasses.replace(self, group="")

    def key(self) -> str:
        """64 hex digits."""
        return hashlib.sha256(self.canonical()).hexdigest()

    def recipe(self) -> Recipe:
        """All of it but the source and the arch."""
        return Recipe(self.flags, self.headers, self.toolchain)

    @classmethod
    def parse(cls, data: bytes) -> CodeObjectSpec:
        """The spec of canonical bytes. Raises ValueError for any others."""
        try:
            document = json.loads(data)
            if document.pop("format", None) != FORMAT:
                raise ValueError(f"not a code object's spec of format {FORMAT}")
            spec = cls(**{**document, "flags": tuple(document["flags"])})
            canonical = spec.canonical()
        except (AttributeError, KeyError, RecursionError, TypeError) as error:
            raise ValueError(f"not a code object's spec: {error}") from error
        if canonical != data:
            raise ValueError("a spec that is not in its canonical form has no key")
        return spec


@dataclasses.dataclass(frozen=True)
class ForeignSpec:
    """The spec of an object that comes as one.

    arch    gfx942
    object  sha256 of its bytes: 64 hex digits
    """

    arch: str
    object: str

    def canonical(self) -> bytes:
        """The serialised spec. Its sha256 is the key."""
        return _canonical({"format": FORMAT, **dataclasses.asdict(self)})

    def key(self) -> str:
        """64 hex digits."""
        return hashlib.sha256(self.canonical()).hexdigest()


def parse(data: bytes) -> CodeObjectSpec | ForeignSpec:
    """The spec of canonical bytes, of either form. Raises ValueError for any others."""
    try:
        document = json.loads(data)
        foreign = document.keys() == {"arch", "format", "object"}
    except (AttributeError, RecursionError) as error:
        raise ValueError(f"not a code object's spec: {error}") from error
    if not foreign:
        return CodeObjectSpec.parse(data)
    spec = ForeignSpec(document["arch"], document["object"])
    if spec.canonical() != data:
        raise ValueError("a spec that is not in its canonical form has no key")
    return spec
