# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""An object of hostile_source, in the process before others; whether its functions are called."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import resource
import signal
from pathlib import Path


def load_for_all(path: str) -> None:
    """For all libraries that come later to see."""
    ctypes.CDLL(str(Path(path).absolute()), ctypes.RTLD_GLOBAL)


def count() -> int:
    """Its functions, of the object that the process finds first."""
    return int(ctypes.CDLL(None).hostile())


def ends_the_process(name: str) -> bool:
    """Whether the function that the process finds by this name is of the object."""
    function = getattr(ctypes.CDLL(None), name)
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        function()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGABRT
