# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn cache`: the user's cache of code objects."""

from __future__ import annotations

import argparse
import datetime
import io
import json
import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiter_attn
from aiter_attn import _C
from aiter_attn._cli import files, store
from aiter_attn._cli import kernels as built_in
from aiter_attn._cli.cache_files import MOST_BYTES, Busy, CacheFolder, Entry, Refused, unpacked

__all__ = ["add_to", "parse_size"]

_UNITS = "KMGT"
_SIZE = re.compile(rf"(\d+)([{_UNITS}]?)")
_MEMBER = re.compile(r"([0-9a-f]{64})\.object")
_HEAD_SIZE = 80


def add_to(commands: Any) -> None:
    """Adds the command and its own to argparse's sub-commands."""
    cache = commands.add_parser("cache", help="the user's cache of code objects")
    actions = cache.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, run: Any, told: str) -> argparse.ArgumentParser:
        action: argparse.ArgumentParser = actions.add_parser(name, help=told)
        action.set_defaults(run=_command(run))
        return action

    add("path", _path, "the folder of its files")
    add("ls", _ls, "its objects, the least recently used first").add_argument(
        "--json", action="store_true", help="as JSON"
    )
    add("verify", _verify, "reads all; what is not believed is set aside; exit status 1 if any")
    action = add("gc", _gc, "removes what was not used for the longest time")
    action.add_argument("--max-size", metavar="SIZE", required=True, help="512M; K, M, G, T; 0")
    action = add("export", _export, "writes objects to a file, for `import`")
    action.add_argument("file", metavar="FILE", help="a tar file; -: stdout")
    action.add_argument("keys", metavar="KEY", nargs="*", help="default: all")
    action = add("import", _import, "takes objects from a file of `export`")
    action.add_argument("file", metavar="FILE", help="a tar file")
    action.add_argument(
        "--trust",
        action="store_true",
        help="also objects that this build knows no digest of: they run on the GPU unproven",
    )
    action = add("clean", _clean, "removes objects")
    action.add_argument("keys", metavar="KEY", nargs="*", help="default: all")


def parse_size(text: str) -> int:
    """The bytes of "512M". Raises ValueError."""
    match = _SIZE.fullmatch(text)
    if not match:
        raise ValueError(
            f"--max-size {text}: allowed: a whole number of bytes, or of {', '.join(_UNITS)} "
            "(1024 bytes, and so on): 512M, for example"
        )
    return int(match[1]) << 10 * (_UNITS.index(match[2]) + 1 if match[2] else 0)


def _command(run: Any) -> Any:
    """With the reason why a file or a folder is refused as an error of the command."""

    def command(arguments: argparse.Namespace) -> int:
        try:
            status: int = run(_folder(), arguments)
        except (Refused, Busy) as error:
            raise ValueError(str(error)) from error
        return status

    return command


def _folder() -> CacheFolder:
    path = _C.cache_dir()
    if not path:
        raise ValueError("there is none, as HOME is not set; name a folder in AITER_ATTN_CACHE_DIR")
    return CacheFolder(Path(path))


def _digests() -> dict[str, str]:
    """The sha256 of the objects that this build knows, by key."""
    return {
        made["key"]: made["sha256"]
        for instance in built_in.manifest()["instances"]
        for made in instance["code_objects"].values()
        if made.get("sha256")
    }


def _chosen(folder: CacheFolder, keys: list[str]) -> list[Entry]:
    """The objects of keys, or of their first 8 digits or more. Raises LookupError."""
    objects = [entry for entry in folder.entries() if entry.kind == "object"]
    if not keys:
        return objects
    chosen = []
    for key in keys:
        found = [e for e in objects if len(key) >= 8 and e.key.startswith(key.lower())]
        if len(found) != 1:
            why = "several objects; add digits" if found else "no such object in the cache"
            raise LookupError(f"{key}: {why}; `aiter-attn cache ls` lists the {len(objects)}")
        chosen += found
    return chosen


def _path(folder: CacheFolder, _: argparse.Namespace) -> int:
    print(folder.path)
    return 0


def _ls(folder: CacheFolder, arguments: argparse.Namespace) -> int:
    kernels = aiter_attn.kernels()
    # Of members of compile groups, as long as nothing has their exact objects.
    places = {k["key"]: store.find(k["key"]) for k in kernels}
    names = {
        key: f"{k['arch']} {k['name']}, by itself"
        for k in kernels
        if (key := places[k["key"]].key) is not None
    }
    names |= {k["key"]: f"{k['arch']} {k['name']}" for k in kernels}
    names |= {k["key"]: f"{k['arch']} {k['name']}" for k in built_in.norm_kernels()}
    told: list[dict[str, Any]] = [
        {
            "key": entry.key,
            "kind": entry.kind,
            "size": entry.size,
            "used": datetime.datetime.fromtimestamp(entry.used).isoformat(" ", "seconds"),
            "kernel": names.get(entry.key),
        }
        for entry in folder.entries()
    ]
    if arguments.json:
        print(json.dumps({"path": str(folder.path), "files": told}, indent=2))
        return 0
    for row in told:
        kind = "" if row["kind"] == "object" else f"  ({row['kind']})"
        kernel = row["kernel"] or "of no kernel that is built in"
        print(f"{row['key'][:16]} {row['size']:>9} {row['used']}{kind}  {kernel}")
    objects = [row for row in told if row["kind"] == "object"]
    print(f"{folder.path}: {len(objects)} objects, {sum(row['size'] for row in objects)} bytes")
    return 0


def _verify(folder: CacheFolder, _: argparse.Namespace) -> int:
    digests = _digests()
    right, refused = 0, 0
    for entry in folder.entries():
        if entry.kind != "object":
            continue
        try:
            folder.read(entry.key, digests.get(entry.key))
            right += 1
        except FileNotFoundError:
            continue  # removed meanwhile
        except Refused as error:
            refused += 1
            folder.set_aside(entry.key)
            print(f"{folder.file(entry)} {error}; set aside as {entry.key}.refused")
    print(f"{folder.path}: {right} objects are right, {refused} were not")
    return 1 if refused else 0


def _gc(folder: CacheFolder, arguments: argparse.Namespace) -> int:
    most = parse_size(arguments.max_size)
    entries = folder.entries()
    # The file that a process writes stays, one that a killed process left goes; then refused ones,
    # and those of failures.
    for entry in (e for e in entries if e.is_unfinished):
        folder.remove(entry)
    entries = sorted((e for e in entries if not e.is_unfinished), key=lambda e: e.kind == "object")
    size = sum(entry.size for entry in entries)
    removed = 0
    for entry in entries:
        if size <= most:
            break
        if folder.remove(entry):
            size -= entry.size
            removed += 1
    print(f"{folder.path}: {removed} files removed, {size} bytes left")
    return 0


def _clean(folder: CacheFolder, arguments: argparse.Namespace) -> int:
    chosen = _chosen(folder, arguments.keys) if arguments.keys else folder.entries()
    removed = sum(folder.remove(entry) for entry in chosen)
    print(f"{folder.path}: {removed} files removed")
    if removed < len(chosen):
        raise ValueError(f"{len(chosen) - removed} files stay: other processes use them")
    return 0


def _export(folder: CacheFolder, arguments: argparse.Namespace) -> int:
    digests = _digests()
    packed = io.BytesIO()
    count = 0
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for entry in sorted(_chosen(folder, arguments.keys), key=lambda e: e.key):
            try:
                data = folder.read(entry.key, digests.get(entry.key))
            except Refused as error:
                raise ValueError(
                    f"{folder.file(entry)} {error}; `aiter-attn cache verify` sets it aside"
                ) from error
            member = tarfile.TarInfo(f"{entry.key}.object")
            member.size, member.mode = len(data), 0o600
            tar.addfile(member, io.BytesIO(data))
            count += 1
    if arguments.file == "-":
        sys.stdout.buffer.write(packed.getvalue())
        return 0
    files.write_whole(Path(arguments.file), packed.getvalue())
    print(f"{arguments.file}: {count} objects")
    return 0


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Keys and files of an exported file. Raises ValueError for anything else in it."""
    try:
        with tarfile.open(path, mode="r:") as tar:
            for member in tar:
                match = _MEMBER.fullmatch(member.name)
                if not match or not member.isreg():
                    raise ValueError(
                        f"{path}: {member.name!r}; allowed: regular files KEY.object, as `export` "
                        "writes them"
                    )
                if member.size > MOST_BYTES + _HEAD_SIZE:
                    raise ValueError(f"{path}: {member.name} has {member.size} bytes")
                if opened := tar.extractfile(member):  # it is a regular file
                    yield match[1], opened.read()
    except tarfile.TarError as error:
        raise ValueError(
            f"{path}: no whole tar file of `aiter-attn cache export`: {error}"
        ) from None


def _import(folder: CacheFolder, arguments: argparse.Namespace) -> int:
    path = Path(arguments.file)
    digests = _digests()
    folder.check()
    taken: dict[str, bytes] = {}
    # All of it is checked before anything is written.
    for key, data in _members(path):
        try:
            unpacked(key, data, digests.get(key))
        except Refused as error:
            raise ValueError(f"{path}: {key}.object {error}") from error
        if key not in digests and not arguments.trust:
            raise ValueError(
                f"{path}: {key}: nothing proves its bytes, as this build knows no digest of it; "
                "add --trust if you trust who made the file"
            )
        taken[key] = data
    for key, data in taken.items():
        folder.publish(key, data)
    print(f"{folder.path}: {len(taken)} objects")
    return 0
