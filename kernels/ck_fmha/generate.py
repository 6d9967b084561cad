# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the generated repositories of kernel instances: see ckgen/emission.py.

Standard library only: it runs while repositories are fetched, before anything is built.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from kernels.archs.archs import read_archs
from kernels.ck_fmha.ckgen.directions import PoolError
from kernels.ck_fmha.ckgen.emission import RecordedPool, pool_files, set_files
from kernels.ck_fmha.ckgen.headers import TABLE, HeadersError, Sections, headers_files
from kernels.ck_fmha.ckgen.pool import Pool
from kernels.ck_fmha.ckgen.schema import parse_variant_set
from kernels.ck_fmha.ckgen.selection import select_instances
from kernels.qola import manifest
from kernels.variants.values import VariantSetError


def pool_repository_files(fmha_dir: Path, archs_file: Path) -> dict[str, str]:
    """The repository of all instances. Raises PoolError, HeadersError, and VariantSetError for a
    record."""
    return pool_files(Pool(fmha_dir).candidates, read_archs(archs_file))


def variant_set_files(pool_file: Path, path: Path, outside: bool = False) -> dict[str, str]:
    """The repository of the variant set in a file. Raises VariantSetError.

    outside  the file is not one of kernels/variants: it may be a manifest of QoLA's, too
    """
    shown = str(path) if outside else f"kernels/variants/{path.name}"
    pool = RecordedPool(pool_file.read_text("utf-8"))
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise VariantSetError(f"{shown}: not UTF-8: {error}; write it as UTF-8") from None
    if outside and manifest.is_manifest(text):
        text = manifest.read(text, shown).variant_set
    variant_set = parse_variant_set(text, shown, pool.known_values)
    chosen = select_instances(variant_set, pool.candidates)
    launches = pool_file.parent / "launch"
    return set_files(pool, chosen, lambda name: (launches / f"{name}.inc").read_text("utf-8"))


def write_files(files: Mapping[str, str], out: Path) -> None:
    for folder in {(out / path).parent for path in files}:
        folder.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        (out / path).write_text(text, "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    pool = commands.add_parser("pool", help="@ck_fmha")
    pool.add_argument("--fmha-dir", type=Path, required=True, help="upstream's 01_fmha folder")
    pool.add_argument("--archs", type=Path, required=True, help="archs.json of @archs")
    variant_set = commands.add_parser("variant-set", help="the repository of one variant set")
    variant_set.add_argument("--pool", type=Path, required=True, help="pool.json of @ck_fmha")
    variant_set.add_argument("--file", type=Path, required=True, help="the variant set file")
    variant_set.add_argument(
        "--outside", action="store_true", help="it may be a manifest of QoLA's, too"
    )
    headers = commands.add_parser("headers", help="@ck_headers")
    headers.add_argument(
        "--tree",
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help="a repository of upstream's headers",
    )
    for command in (pool, variant_set, headers):
        command.add_argument("--out", type=Path, required=True, help="the repository's folder")
    options = parser.parse_args()
    try:
        if options.command == "pool":
            files = pool_repository_files(options.fmha_dir, options.archs)
        elif options.command == "headers":
            trees = {name: Path(root) for name, _, root in (t.partition("=") for t in options.tree)}
            files = headers_files(Sections(TABLE.read_text("utf-8")), trees)
        else:
            files = variant_set_files(options.pool, options.file, options.outside)
    except (HeadersError, VariantSetError, PoolError) as error:
        print(error, file=sys.stderr)
        return 1
    write_files(files, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
