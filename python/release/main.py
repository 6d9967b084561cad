# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`./bazelw run //:release -- --to=FOLDER|URL`: publishes wheels, packs and archives.

Bazel has built them before this starts. docs/releasing.md is the manual.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from python.release import checkout, provenance, publish, targets
from python.release.errors import ReleaseError
from python.release.make import make
from toolchains.sbom import contents, materials

_TO_VARIABLE = "AITER_ATTN_RELEASE_TO"
TO = flags.DEFINE_string(
    "to",
    None,
    "a folder, or the http(s) URL of a folder of a WebDAV server; without it, that of the variable "
    f"{_TO_VARIABLE}, which other users of the machine do not see",
)
DIRTY = flags.DEFINE_bool("dirty", False, "release files that differ from the commit, and say so")
BUILDER = flags.DEFINE_string(
    "builder", provenance.LOCAL_BUILDER, "URI of who builds, for the provenance"
)
SOURCE = flags.DEFINE_string("source", None, "URI of the repository, for the provenance")
ARTEFACTS = flags.DEFINE_string("artefacts", None, "set by Bazel: its outputs", required=True)
# The locks and the SBOM's data of the tree that this is run in.
_DEBIAN, _PYPI, _NPM = (Path(f"toolchains/{s}/lock.json") for s in ("debian", "pypi", "npm"))
_CONTENTS = Path("toolchains/sbom/contents.toml")
_COPYRIGHTS = Path("toolchains/sbom/copyrights.json")


def run(root: Path, working_folder: Path) -> str:
    """Publishes, and returns the text to print. Raises ReleaseError."""
    to = TO.value if TO.value is not None else os.environ.get(_TO_VARIABLE)
    if to is None:
        raise ReleaseError(f"where to? Give a folder or a URL: --to=FOLDER|URL, or {_TO_VARIABLE}")
    provenance.check_uri("builder", BUILDER.value)
    if SOURCE.value:
        provenance.check_uri("source", SOURCE.value)
    commit = checkout.head(root, allow_modified=DIRTY.value)
    release = make(
        Path(ARTEFACTS.value),
        Path(),
        commit,
        materials.of_locks(_DEBIAN, _PYPI, _NPM),
        contents.read(_CONTENTS, _COPYRIGHTS),
        BUILDER.value,
        SOURCE.value,
    )
    target = targets.parse(to, working_folder)
    done = publish.publish(release, target, lambda text: print(f"release: {text}", flush=True))
    return (
        f"{done.written} files written ({done.bytes_written} bytes), {done.kept} were there; "
        f"{target.shown}: {release.folder}/release.json"
    )


def main(argv: Sequence[str]) -> int:
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}; there are only options")
    root = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if not root:
        raise app.UsageError("run it through Bazel: ./bazelw run //:release -- --to=FOLDER|URL")
    try:
        print("release:", run(Path(root), Path(os.environ["BUILD_WORKING_DIRECTORY"])))
    except (ReleaseError, contents.ContentsError) as error:
        print(f"release: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("release: interrupted; run it again to go on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    app.run(main)
