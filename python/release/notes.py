# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`./bazelw run //:release_notes -- --since=TAG`: release notes, made of the commits' messages.

They are read as Conventional Commits: TYPE(SCOPE)!: DESCRIPTION. Changes that break come first: "!"
in the first line, or a footer "BREAKING CHANGE: ..." that says more.
"""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from absl import app, flags

from python.release.checkout import git
from python.release.errors import ReleaseError

SINCE = flags.DEFINE_string("since", None, "the tag, or another name of a commit, of last time")
UNTIL = flags.DEFINE_string("until", "HEAD", "the last commit that counts")
READ_AS = flags.DEFINE_multi_string(
    "read_as", [], "COMMIT=MESSAGE: what a commit says that cannot be read"
)

# TYPE -> the heading that it stands under; None: of no interest to users.
_TYPES: Mapping[str, str | None] = {
    "feat": "New",
    "fix": "Mended",
    "perf": "Faster",
    "revert": "Taken back",
    "docs": "Documentation",
    "build": None,
    "chore": None,
    "ci": None,
    "refactor": None,
    "style": None,
    "test": None,
}
_HEADER = re.compile(
    r"(?P<type>[a-z]+)(?:\((?P<scope>[^()\n]+)\))?(?P<bang>!)?: (?P<description>\S.*)"
)
# A footer goes on until the next one, or the end.
_BREAKING = re.compile(
    r"^BREAKING[ -]CHANGE: (?P<text>.+?)(?=^[A-Za-z][\w-]*(?:: | #)|\Z)", re.M | re.S
)


@dataclasses.dataclass(frozen=True)
class Change:
    """One commit, read.

    breaks: what breaks, in words, or None
    """

    sha: str
    type: str
    scope: str | None
    description: str
    breaks: str | None


def read(sha: str, message: str) -> Change:
    """Raises ReleaseError for a message that is no Conventional Commit of a known type."""
    header, _, body = message.strip().partition("\n")
    match = _HEADER.fullmatch(header.strip())
    if match is None or match["type"] not in _TYPES:
        what = f"type {match['type']!r}" if match else "first line"
        raise ReleaseError(
            f"commit {sha[:12]} {header!r}: cannot read its {what}; want TYPE(SCOPE): DESCRIPTION "
            f"with one of {', '.join(_TYPES)}. Say what it is: "
            f"--read_as='{sha[:12]}=fix: ...'"
        )
    footer = _BREAKING.search(body)
    breaks = " ".join(footer["text"].split()) if footer else None
    if match["bang"] and not breaks:
        breaks = match["description"]
    return Change(sha, match["type"], match["scope"], match["description"], breaks)


def _replaced(commits: Sequence[tuple[str, str]], read_as: Sequence[str]) -> dict[str, str]:
    """sha -> message, with those that the user replaces. Raises ReleaseError."""
    messages = dict(commits)
    for text in read_as:
        name, equals, message = text.partition("=")
        matching = [sha for sha in messages if name and sha.startswith(name)]
        if not equals or len(matching) != 1:
            raise ReleaseError(
                f"--read_as={text}: {len(matching)} of the commits begin with {name!r}; want "
                "COMMIT=MESSAGE with one of them"
            )
        messages[matching[0]] = message
    return messages


def commits(root: Path, since: str, until: str) -> list[tuple[str, str]]:
    """(sha, message) after since and up to until, the newest first; merges are left out.

    Raises ReleaseError where there is no such commit, naming the tags that there are.
    """
    for name in (since, until):
        try:
            git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        except ReleaseError as error:
            tags = git(root, "tag", "--sort=-creatordate").split()[:10]
            there = f"the newest tags are {', '.join(tags)}" if tags else "there are no tags"
            raise ReleaseError(
                f"{name!r} is no tag and no commit of this checkout; {there}. A shallow clone "
                "lacks them: git fetch --tags --unshallow"
            ) from error
    log = git(root, "log", "--no-merges", "-z", "--format=%H%n%B", f"{since}..{until}", "--")
    parts = (entry.partition("\n") for entry in log.split("\0") if entry)
    return [(sha, message) for sha, _, message in parts]


def write(changes: Iterable[Change], since: str) -> str:
    """The notes, as Markdown."""
    changes = list(changes)
    sections = [("Breaks", [(c, c.breaks) for c in changes if c.breaks])]
    headings = dict.fromkeys(heading for heading in _TYPES.values() if heading)
    sections += [
        (heading, [(c, c.description) for c in changes if _TYPES[c.type] == heading])
        for heading in headings
    ]
    lines = [f"# Changes since {since}", ""]
    for heading, entries in sections:
        if entries:
            lines += [f"## {heading}", "", *(_line(c, text or "") for c, text in entries), ""]
    if len(lines) == 2:
        lines += ["Nothing that users would notice.", ""]
    return "\n".join(lines)


def _line(change: Change, text: str) -> str:
    scope = f"**{change.scope}**: " if change.scope else ""
    return f"- {scope}{text} ({change.sha[:12]})"


def main(argv: Sequence[str]) -> int:
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}; there are only options")
    root = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if not root or not SINCE.value:
        raise app.UsageError("run it as ./bazelw run //:release_notes -- --since=TAG")
    try:
        found = commits(Path(root), SINCE.value, UNTIL.value)
        messages = _replaced(found, READ_AS.value)
        print(write([read(sha, text) for sha, text in messages.items()], SINCE.value), end="")
    except ReleaseError as error:
        print(f"release_notes: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    app.run(main)
