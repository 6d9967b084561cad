# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The public face of the wheel, as text that is kept beside the tests.

`./bazelw run //python/tests/wheel:update_goldens` writes the files anew; a test compares.
"""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

FOLDER = Path("python/tests/wheel")


def _metadata(wheel: zipfile.ZipFile) -> str:
    """METADATA without its description, which is README.md, without the local version, which says
    of which kernels a build is, and without the file of the licence of AITER's objects, which not
    every build has."""
    (name,) = [n for n in wheel.namelist() if n.endswith(".dist-info/METADATA")]
    fields = wheel.read(name).decode().partition("\n\n")[0].splitlines()
    fields = [f.partition("+")[0] if f.startswith("Version: ") else f for f in fields]
    return "".join(f"{f}\n" for f in fields if f != "License-File: amd-aiter/LICENSE")


def goldens(path: Path) -> dict[str, str]:
    """File name -> contents, of the wheel at path."""
    with zipfile.ZipFile(path) as wheel:
        return {"METADATA.golden": _metadata(wheel)}


def main() -> int:
    root = Path(os.environ["BUILD_WORKSPACE_DIRECTORY"])
    for name, text in goldens(Path(os.environ["WHEEL"])).items():
        path = root / FOLDER / name
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(root))
    return 0


if __name__ == "__main__":
    sys.exit(main())
