# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""JAX's ROCm plugin on emulated GPUs.

    runtime = emulated_rocm.bring_up(libraries)      # before the first use of jax
    jax.devices()                                    # those of EMULATED_HIP_DEVICES

The plugin and jax are unchanged from their wheels, but for one answer: the number of GPUs that the
machine's kernel driver knows.
"""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

from tests.emulation import known_findings
from tests.emulator.hip import emulated_hip

HIP = "libamdhip64.so.7"

# Without them XLA calls libraries that are stand-ins here, and functions of HIP that are not there.
_XLA_FLAGS = {
    "--xla_gpu_autotune_level=0": "autotuning launches kernels of the plugin's own fat binaries",
    "--xla_gpu_enable_command_buffer=": "HIP's graphs",
    "--xla_gpu_gemm_rewrite_size_threshold=1000000000": "hipBLASLt: products are XLA's own loops",
}


def bring_up(libraries: Sequence[str]) -> emulated_hip.Runtime:
    """Loads the libraries that the plugin needs, and attaches the emulator.

    Args:
      libraries: paths of what stand_ins() makes.
    """
    loaded = {Path(path).name: ctypes.CDLL(str(Path(path).resolve())) for path in libraries}
    hip = loaded[HIP]
    runtime = emulated_hip.attach(hip, known_findings.signatures, known_findings.takes_turns)
    # The plugin tears its client down after Python has ended.
    atexit.register(hip.emulated_hip_end)
    os.environ["XLA_FLAGS"] = " ".join([*_XLA_FLAGS, os.environ.get("XLA_FLAGS", "")])
    os.environ["JAX_PLATFORMS"] = "rocm,cpu"
    # An allocation per array where the plugin can: exact bounds. No pool of most of the memory.
    os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = "platform"
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    os.environ.setdefault("EMULATED_HIP_MEMORY", str(1 << 30))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

    from jax._src import hardware_utils

    count = len(os.environ.get("EMULATED_HIP_DEVICES", "gfx942").split(","))
    hardware_utils.num_available_amd_gpus = lambda stop_at=None: count
    return runtime
