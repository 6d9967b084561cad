# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Makes torch importable: run by Python as it starts, in tests that depend on @torch_newest.

Its thousands of files are no inputs of a test: they are found beside this one, in the repository
that it lies in.
"""

from __future__ import annotations

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent / "site-packages"))
