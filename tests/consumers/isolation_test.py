# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The hostile object is there, and its functions end the process: calls_test, which runs in the
same process, shows that they are never called."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import resource
import signal

import pytest

from tests.consumers.attention import Consumer


@pytest.mark.parametrize(
    "name",
    [
        "_ZN5aiter7mha_fwdENS_12mha_fwd_argsERKN7ck_tile13stream_configE",
        "_ZN7ck_tile13stream_configC1Ev",
        "aiter_attn_fwd",
        "aiter_attn_bwd",
    ],
)
def test_it_is_found_first(consumer: Consumer, name: str) -> None:
    function = getattr(ctypes.CDLL(None), name)
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        function()
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGABRT


def test_it_has_all_of_the_library() -> None:
    assert ctypes.CDLL(None).hostile() > 1000
