# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The hostile object is there, and its functions end the process: calls_test, which runs in the
same process, shows that they are never called."""

from __future__ import annotations

import pytest

from tests.consumers import hostile
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
    assert hostile.ends_the_process(name)


def test_it_has_all_of_the_library() -> None:
    assert hostile.count() > 1000
