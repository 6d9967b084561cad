# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Makes the site: pages of the documents, which Sphinx turns into HTML. A warning is an error."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from absl import app, flags
from sphinx.cmd.build import main as sphinx_build

from docs.site import stage

_FILES = flags.DEFINE_multi_string("file", [], "A file that documents may link to: PATH=FILE.")
_MODULES = flags.DEFINE_multi_string("module", [], "A module of the package: PATH=FILE.")
_OWN = flags.DEFINE_multi_string("own", [], "A file of the site's own: PATH=FILE.")
_OUT = flags.DEFINE_string("out", None, "The folder of the site.", required=True)
_VERSION = flags.DEFINE_string("package_version", None, "The package's version.", required=True)


def _files(values: Sequence[str]) -> Mapping[str, Path]:
    return {path: Path(file) for path, _, file in (value.partition("=") for value in values)}


def main(argv: Sequence[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"{argv[1]!r} is no flag")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "pages"
        for path, text in stage.Pages(_files(_FILES.value)).texts.items():
            _write(folder / path, text)
        for path, file in _files(_OWN.value).items():
            _copy(file, folder / path)
        for path, file in _files(_MODULES.value).items():
            _copy(file, folder / "package" / path)
        os.environ["SITE_VERSION"] = _VERSION.value
        status = sphinx_build(
            ["-q", "-W", "--keep-going", "-d", name + "/doctrees", str(folder), _OUT.value]
        )
    shutil.rmtree(Path(_OUT.value) / ".doctrees", ignore_errors=True)
    if status:
        raise SystemExit(status)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _copy(source: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, to)


if __name__ == "__main__":
    app.run(main)
