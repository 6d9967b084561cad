# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The kernels that are built in are those that the library asks for."""

import os
import subprocess
from pathlib import Path


def test_the_data_is_what_the_library_chooses():
    chosen = subprocess.run([os.environ["PRINT_KERNELS"]], check=True, capture_output=True)
    assert Path(os.environ["KERNELS"]).read_bytes() == chosen.stdout, (
        "write kernels.json anew: ./bazelw run //aiter/norm:print_kernels > "
        "kernels/norm/ahead_of_time/kernels.json"
    )
