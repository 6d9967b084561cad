# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes copyrights.json: licences that Debian packages themselves state, of the wheel's materials.

    ./bazelw run //toolchains/sbom:read_copyrights

For each locked package that contents.toml has sources of, the licence of these in the package's
copyright file, if that is machine-readable; of a source usr/..., which is a file of the package,
the licence that itself names. Reads the locked files where ./bazelw keeps them.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from toolchains.locks import store
from toolchains.sbom import contents, copyright, materials
from toolchains.sbom.materials import Material

FILES = flags.DEFINE_string(
    "files", str(store.Store(os.environ).folder), "the locked files, named by their sha256"
)


class CopyrightError(Exception):
    """A package does not have the files that contents.toml expects. The message names the next
    step."""


def read_deb(deb: Path, path: str) -> str | None:
    """The text of a file of the package; None if it has no such, or another package has it."""
    data = deb.read_bytes()
    if not data.startswith(b"!<arch>\n"):
        raise CopyrightError(
            f"{deb}: not a Debian package; delete it and run ./bazelw --vendor DIR"
        )
    at = 8
    while at < len(data):
        member = data[at : at + 16].decode().strip()
        size = int(data[at + 48 : at + 58])
        if member.startswith("data.tar"):
            with tarfile.open(fileobj=io.BytesIO(data[at + 60 : at + 60 + size])) as tar:
                for entry in tar:
                    if entry.isfile() and entry.name == f"./{path}":
                        stream = tar.extractfile(entry)
                        return stream.read().decode("utf-8") if stream else None
            return None
        at += 60 + size + size % 2
    raise CopyrightError(f"{deb}: it has no data.tar; delete it and run ./bazelw --vendor DIR")


def stated(material: Material, sources: Sequence[str] | None, files: Path) -> str | None:
    """The licence that a package states of these sources; `sources` is None if it states none."""
    deb = files / material.sha256
    if not deb.exists():
        raise CopyrightError(f"{deb} ({material.name}) is missing; run ./bazelw --vendor DIR")
    if hashlib.sha256(deb.read_bytes()).hexdigest() != material.sha256:
        raise CopyrightError(f"{deb} is not what its name says; delete it")
    text = read_deb(deb, f"usr/share/doc/{material.name}/copyright")
    readable = text is not None and copyright.is_machine_readable(text)
    if sources is None:
        if readable:
            raise CopyrightError(
                f"{material.name}: its copyright file is machine-readable; have contents.toml name "
                "the sources of the wheel's materials, in place of a licence"
            )
        return None
    own = {source: read_deb(deb, source) for source in sources if source.startswith("usr/")}
    if missing := [source for source, content in own.items() if content is None]:
        raise CopyrightError(f"{material.name}: it has no file {missing[0]!r}; see contents.toml")
    licences = [copyright.named_licence(content or "") for content in own.values()]
    others = [source for source in sources if source not in own]
    if others:
        if not readable:
            raise CopyrightError(
                f"{material.name}: its copyright file is not machine-readable; have contents.toml "
                "say the licence, in place of sources"
            )
        licences.append(copyright.licence(text or "", others))
    known = sorted({licence for licence in licences if licence is not None})
    return " AND ".join(known) if known and None not in licences else None


def collect(known: contents.Contents, locked: Sequence[Material], files: Path) -> str:
    """The text of copyrights.json."""
    found = {}
    for material in sorted(locked):
        if material.source == "debian" and known.is_in_wheel(material):
            sources = known.sources(material)
            licence = stated(material, sources, files)
            if sources is not None:
                found[material.name] = {
                    "sha256": material.sha256,
                    "sources": list(sources),
                    "licence": licence or contents.UNKNOWN,
                }
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def main(argv: Sequence[str]) -> None:
    root = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
    folder = root / "toolchains/sbom"
    lock = json.loads((root / "toolchains/debian/lock.json").read_text(encoding="utf-8"))
    locked = sorted(materials.of_debian_lock(lock))
    try:
        known = contents.read(folder / "contents.toml", None)
        text = collect(known, locked, Path(FILES.value).expanduser())
    except (CopyrightError, contents.ContentsError) as error:
        raise SystemExit(f"read_copyrights: error: {error}") from error
    (folder / "copyrights.json").write_text(text, encoding="utf-8")
    print(f"read_copyrights: {folder / 'copyrights.json'} is written")


if __name__ == "__main__":
    app.run(main)
