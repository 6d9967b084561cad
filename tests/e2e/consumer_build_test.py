# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The project as a Bazel module of another one: kernels have the same keys, and the wheel has the
same bytes as one that is built here. Nothing that was built in a checkout serves it, as its files
lie in other folders: all of it is compiled."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import differences
from tests.e2e.consumer import VARIANTS, Consumer

WHEEL = "@aiter_attn//python:attn_wheel"


@pytest.fixture(scope="module")
def consumer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Consumer]:
    made = Consumer(tmp_path_factory.mktemp("modules"))
    yield made
    made.close()


def keys(wheel: Path) -> dict[tuple[str, str], str]:
    """Of each kernel of a wheel, by its name and its arch."""
    with zipfile.ZipFile(wheel) as contents:
        manifest: dict[str, Any] = json.loads(contents.read("aiter_attn/manifest.json"))
    return {
        (kernel["name"], arch): code_object["key"]
        for kernel in manifest["instances"]
        for arch, code_object in kernel["code_objects"].items()
    }


def test_kernels_have_the_same_keys_and_the_wheel_the_same_bytes(consumer: Consumer) -> None:
    consumer.bazel("build", VARIANTS, WHEEL)
    (made,) = consumer.outputs(VARIANTS, WHEEL)
    reference = Path(os.environ["REFERENCE_WHEEL"]).resolve()
    assert made.name == reference.name
    assert len(keys(made)) > 4
    assert keys(made) == keys(reference)
    assert not differences.of_wheels(reference, made)
