# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Verifies one code object and writes the result as JSON; the verdict is the readers' business.

The environment names llvm-mc (GFXEMU_LLVM_MC) and the library of kernel arguments
(EMULATION_LAUNCHES).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags
from gfxemu import Device, LlvmMc

from tests.emulation.harness import launches
from tests.emulation.verify.verification import verify

_CODE_OBJECT = flags.DEFINE_string("code_object", None, "the file", required=True)
_INSTANCE = flags.DEFINE_string("instance", None, "its instance's name", required=True)
_ARCH = flags.DEFINE_string("arch", None, "the arch that it is compiled for", required=True)
_OUT = flags.DEFINE_string("out", None, "the result, as JSON", required=True)


def main(_arguments: Sequence[str]) -> None:
    instance = next(i for i in launches.instances() if i.name == _INSTANCE.value)
    device = Device(_ARCH.value, LlvmMc.from_environment())
    result = verify(device, Path(_CODE_OBJECT.value).read_bytes(), instance)
    Path(_OUT.value).write_text(json.dumps(result, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    app.run(main)
