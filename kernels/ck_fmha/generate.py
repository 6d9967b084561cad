# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the generated repository of kernel instances: see ckgen/__init__.py.

Standard library only: it runs while repositories are fetched, before anything is built.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ckgen.emission import repository_files
from ckgen.pool import Pool, PoolError
from ckgen.schema import ManifestError, parse_archs, parse_manifest, variant_set_name
from ckgen.selection import select


def generate(fmha_dir: Path, archs_file: Path, variants_dir: Path) -> dict[str, str]:
    """Path -> text of the repository. Raises ManifestError or PoolError."""
    archs = parse_archs(archs_file.read_text("utf-8"), f"kernels/{archs_file.name}")
    pool = Pool(fmha_dir)
    known_values = pool.known_values()
    variant_sets = {}
    for path in sorted(variants_dir.glob("*.toml")):
        shown = f"kernels/variants/{path.name}"
        selectors = parse_manifest(path.read_text("utf-8"), shown, known_values)
        name = variant_set_name(path.stem, shown)
        variant_sets[name] = select(selectors, pool.candidates)
    if not variant_sets:
        raise ManifestError("kernels/variants: no variant set: it holds no .toml file.")
    return repository_files(pool, variant_sets, archs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fmha-dir", type=Path, required=True, help="CK's 01_fmha example folder")
    parser.add_argument("--archs", type=Path, required=True, help="archs.toml")
    parser.add_argument("--variants", type=Path, required=True, help="the folder of manifests")
    parser.add_argument("--out", type=Path, required=True, help="the repository's folder")
    options = parser.parse_args()
    try:
        files = generate(options.fmha_dir, options.archs, options.variants)
    except (ManifestError, PoolError) as error:
        print(error, file=sys.stderr)
        return 1
    for path, text in files.items():
        target = options.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
