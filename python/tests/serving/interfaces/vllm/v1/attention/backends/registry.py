# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Of vllm/v1/attention/backends/registry.py."""

from __future__ import annotations

import importlib
from enum import Enum
from typing import Any

_ATTN_OVERRIDES: dict[Any, str] = {}


class AttentionBackendEnum(Enum):
    TRITON_ATTN = "vllm.v1.attention.backends.triton_attn.TritonAttentionBackend"
    CUSTOM = None

    @classmethod
    def register(cls, name: str, value: str) -> AttentionBackendEnum:
        if name in cls.__members__:
            raise ValueError(f"Backend {name} already exists")
        member = object.__new__(cls)
        member._name_, member._value_ = name, value
        cls._member_map_[name] = member
        cls._member_names_.append(name)
        return member

    def get_path(self, include_classname: bool = True) -> str:
        return _ATTN_OVERRIDES.get(self, self.value)

    def get_class(self) -> type:
        module, _, name = self.get_path().rpartition(".")
        return getattr(importlib.import_module(module), name)


def register_backend(backend: Any, class_path: str | None = None, is_mamba: bool = False) -> None:
    if isinstance(backend, str):
        backend = AttentionBackendEnum.register(backend, class_path or "")
    _ATTN_OVERRIDES[backend] = class_path or ""
