# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Prints the words of QoLA's manifests for `aiter-attn prebuild --qola`, as a wheel has no table of
traits:

    ./bazelw run //kernels/qola:words > python/aiter_attn/_cli/qola.json
"""

from __future__ import annotations

import json
import sys

from kernels.launch_table.traits import TABLE
from kernels.qola import manifest, receipts, tables


def words() -> str:
    """The text of the file."""
    directions = {}
    for name, direction in tables.TABLES.items():
        traits = TABLE.of_direction(direction)
        asm = [
            kind
            for kind, provider in TABLE.provider_of.items()
            if provider == "asm" and kind.partition("_")[0] == direction
        ]
        directions[direction] = {
            "table": name,
            "kinds": TABLE.directions[direction]["kinds"],
            "asm_kinds": asm,
            "keys": tables.keys_of(direction),
            # Of a size any number may be asked for.
            "values": {t: None if trait.is_size else trait.values for t, trait in traits.items()},
        }
    document = {
        "manifest": {
            "tables": manifest.TABLES,
            "qola": manifest.QOLA_KEYS,
            "build": manifest.BUILD_KEYS,
            "modules": (*manifest.MODULE_KEYS, *manifest.COMPILING),
            "modes": manifest.MODES,
            "drop_directions": manifest.DIRECTIONS,
            "hsa_subdirs": manifest.HSA_SUBDIRS,
            "compiling": manifest.COMPILING,
            "without_ck": manifest.WITHOUT_CK,
        },
        "libraries": manifest.LIBRARIES,
        "bias": tables.BIAS,
        "sink": tables.SINK,
        "receipt": manifest.DEFAULT_RECEIPT,
        "receipts": {number: boxes for number, (_, boxes) in receipts.RECEIPTS.items()},
        "directions": directions,
    }
    return json.dumps(document, indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(words())
