# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The index of the pages in a folder."""

from __future__ import annotations

from html import escape
from pathlib import Path

from toolchains.pages import pages

BUILD = "build.html"
# File, title, what it shows, the command that makes it.
PAGES = (
    (
        BUILD,
        "The last build",
        "what was compiled and what came from which cache, its critical path, earlier builds",
        "./bazelw run //:report",
    ),
    (
        "resources.html",
        "Resources of kernels",
        "registers, LDS, spills and loops of the machine code of a variant set",
        "./bazelw run //kernels:resources -- --page=FOLDER/resources.html",
    ),
    (
        "verification.html",
        "Verification",
        "every code object, executed in the emulator and compared with float64",
        "./bazelw build //tests/emulation/verify:report && cp "
        "bazel-bin/tests/emulation/verify/report.html FOLDER/verification.html",
    ),
    (
        "cluster.html",
        "Builds on a cluster",
        "time and price of building variant sets by the number of workers, simulated",
        "./bazelw run //kernels:cluster -- --page=FOLDER/cluster.html",
    ),
    (
        "scale.html",
        "Loading and analysis",
        "time and memory of Bazel by the number of code objects",
        "./bazelw run //tests/bench:scale -- --lookups --page=FOLDER/scale.html",
    ),
    (
        "norms.html",
        "Bench of norms",
        "bandwidth of our kernels and of others on this machine's GPU",
        "python3 -m tests.bench.norms.bench --page=FOLDER/norms.html",
    ),
)


def write(folder: Path) -> None:
    """Writes index.html: links to the pages that the folder has, the commands of the others."""
    rows = []
    for file, title, shows, command in PAGES:
        name = f'<a href="{file}">{title}</a>' if (folder / file).is_file() else title
        rows.append(
            f"<tr><td>{name}</td><td>{escape(shows)}</td>"
            f"<td><code>{escape(command)}</code></td></tr>"
        )
    body = (
        "<p class=mild>A page that is not linked is not in this folder yet; its command writes it."
        "</p><div class=wide><table><thead><tr><th>Page</th><th>Shows</th><th>Made by</th></tr>"
        f"</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
    (folder / "index.html").write_text(pages.page("Pages of this project", body), "utf-8")
