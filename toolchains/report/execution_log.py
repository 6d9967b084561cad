# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Reads the file of Bazel's --execution_log_compact_file.

It is zstd over ExecLogEntry messages of Bazel's src/main/protobuf/spawn.proto, each with its length
before it. A file is an entry of its own, which spawns name by its number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import zstandard

# Numbers of fields.
_ID, _INVOCATION, _FILE, _DIRECTORY, _SPAWN = 1, 2, 3, 4, 7
_PATH, _DIGEST, _FILES = 1, 2, 2
_SIZE = 2
_OUTPUTS, _LABEL, _MNEMONIC, _RUNNER, _CACHED = 6, 7, 8, 11, 12

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5

Fields = dict[int, list[int | bytes]]


@dataclasses.dataclass(frozen=True)
class Spawn:
    """One command of a build, or what a cache had in its place.

    runner  "linux-sandbox", "disk cache hit", ...
    outputs paths and their bytes; those of a folder are the sum of its files
    """

    mnemonic: str
    label: str
    runner: str
    cached: bool
    outputs: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        return sum(size for _, size in self.outputs)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _fields(data: bytes) -> Fields:
    """The fields of a message: by number, in order."""
    found: Fields = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        value: int | bytes
        if kind == _VARINT:
            value, at = _varint(data, at)
        elif kind in (_BYTES, _EIGHT, _FOUR):
            length = {_EIGHT: 8, _FOUR: 4}.get(kind)
            if length is None:
                length, at = _varint(data, at)
            value = data[at : at + length]
            at += length
        else:
            raise ValueError(f"a field of type {kind}")
        found.setdefault(tag >> 3, []).append(value)
    return found


def _message(fields: Fields, number: int) -> Fields:
    value = fields.get(number, [b""])[0]
    return _fields(value) if isinstance(value, bytes) else {}


def _text(fields: Fields, number: int) -> str:
    value = fields.get(number, [b""])[0]
    return value.decode() if isinstance(value, bytes) else ""


def _number(fields: Fields, number: int) -> int:
    value = fields.get(number, [0])[0]
    return value if isinstance(value, int) else 0


def _file(fields: Fields) -> tuple[str, int]:
    return _text(fields, _PATH), _number(_message(fields, _DIGEST), _SIZE)


def _entries(path: Path) -> Iterator[Fields]:
    with path.open("rb") as file:
        try:
            data = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
        except zstandard.ZstdError as error:
            raise ValueError(f"{path}: {error}; want a compact execution log of Bazel") from error
    at = 0
    while at < len(data):
        length, at = _varint(data, at)
        yield _fields(data[at : at + length])
        at += length


def read(path: Path) -> list[Spawn]:
    """Returns the spawns of a log. Raises OSError or ValueError for what is not one."""
    made: dict[int, tuple[str, int]] = {}
    spawns = []
    known = False
    for entry in _entries(path):
        known = known or _INVOCATION in entry
        number = _number(entry, _ID)
        if _FILE in entry:
            made[number] = _file(_message(entry, _FILE))
        elif _DIRECTORY in entry:
            folder = _message(entry, _DIRECTORY)
            files = [_file(_fields(f)) for f in folder.get(_FILES, []) if isinstance(f, bytes)]
            made[number] = (_text(folder, _PATH), sum(size for _, size in files))
        elif _SPAWN in entry:
            spawn = _message(entry, _SPAWN)
            # An output is a message that has the number of its entry, whatever kind it is.
            numbers = [
                number
                for output in spawn.get(_OUTPUTS, [])
                if isinstance(output, bytes)
                for values in _fields(output).values()
                for number in values
            ]
            spawns.append(
                Spawn(
                    mnemonic=_text(spawn, _MNEMONIC),
                    label=_text(spawn, _LABEL),
                    runner=_text(spawn, _RUNNER),
                    cached=bool(_number(spawn, _CACHED)),
                    outputs=tuple(made[n] for n in numbers if isinstance(n, int) and n in made),
                )
            )
    if not known:
        raise ValueError(f"{path}: no execution log; want a file of --execution_log_compact_file")
    return spawns
