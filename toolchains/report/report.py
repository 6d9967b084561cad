# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the page of the last build, and the index of the project's pages.

    ./bazelw run //:report [-- --to=FOLDER]

The folder is that of the workspace's records in bazelw's cache folder, unless another is given.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from toolchains.bazel import recording
from toolchains.pages import index
from toolchains.report import build_page

_TO = flags.DEFINE_string("to", None, "folder of the pages; made where it is not there")
_WORKSPACE = flags.DEFINE_string("workspace", None, "whose builds; the one it is run from")
_CHART_JS = flags.DEFINE_string("chart_js", None, "file of Chart.js", required=True)


def write(workspace: Path, to: Path | None, chart_js: Path) -> Path:
    """Writes the pages and returns that of the build.

    Raises FileNotFoundError where no build was recorded, OSError or ValueError for records or a
    folder that cannot be used.
    """
    records = Path(recording.folder_of(str(workspace), os.environ))
    last = records / "last"
    if not last.is_dir():
        raise FileNotFoundError(
            f"no build of {workspace} is recorded; run ./bazelw build or ./bazelw test on something"
            " that is not up to date, without CI=true and BAZELW_PROGRESS=never"
        )
    build = build_page.read(last, recording.read_seconds(os.environ))
    text = build_page.page(build, recording.history(str(records)), chart_js)
    folder = to or records / "pages"
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / index.BUILD
    page.write_text(text, "utf-8")
    index.write(folder)
    return page


def main(argv: Sequence[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"unknown argument {argv[1]!r}; want --to=FOLDER or nothing")
    # `bazel run` starts a program in its runfiles.
    here = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    workspace = Path(_WORKSPACE.value or os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
    try:
        page = write(workspace, here / _TO.value if _TO.value else None, Path(_CHART_JS.value))
    except (OSError, EOFError, ValueError) as error:
        raise SystemExit(f"report: {error}") from error
    print(page)


if __name__ == "__main__":
    app.run(main)
