# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Starts a program that refuses to be root's: not_root.py PROGRAM ARGUMENT...

Root gets another number in a namespace of its own, and stays the owner of its files.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_ANOTHER = 1000


def main(command: list[str]) -> None:
    user, group = os.geteuid(), os.getegid()
    if not user:
        os.unshare(os.CLONE_NEWUSER)
        own = Path("/proc/self")
        (own / "setgroups").write_text("deny")
        (own / "uid_map").write_text(f"{_ANOTHER} {user} 1")
        (own / "gid_map").write_text(f"{_ANOTHER} {group} 1")
    os.execv(command[0], command)  # noqa: S606  (a program takes the place of this one)


if __name__ == "__main__":
    main(sys.argv[1:])
