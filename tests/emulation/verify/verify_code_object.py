# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Verifies one code object and writes the result as JSON; the verdict is the readers' business.

The environment names llvm-mc (GFXEMU_LLVM_MC) and the library of kernel arguments
(EMULATION_LAUNCHES).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from gfxemu import Device, LlvmMc

from tests.emulation.harness import launches
from tests.emulation.verify.verification import verify


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--code-object", type=Path, required=True)
    parser.add_argument("--instance", required=True)
    parser.add_argument("--arch", required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    instance = next(i for i in launches.instances() if i.name == options.instance)
    device = Device(options.arch, LlvmMc.from_environment())
    result = verify(device, options.code_object.read_bytes(), instance)
    options.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
