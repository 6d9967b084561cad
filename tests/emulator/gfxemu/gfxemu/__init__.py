# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Execute gfx90a, gfx942 and gfx950 code objects on the CPU (../README.md)."""

from gfxemu.checks import Checks, Finding
from gfxemu.disassembler import LlvmMc
from gfxemu.errors import EmulationError
from gfxemu.launch import Device, Report

__all__ = ["Checks", "Device", "EmulationError", "Finding", "LlvmMc", "Report"]
