# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: the tests have an empty cache, and hipRTC to compile with."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tests.emulation.wheel.compiler import load_compiler

load_compiler(Path(tempfile.mkdtemp(prefix="cache-", dir=os.environ.get("TEST_TMPDIR"))))
