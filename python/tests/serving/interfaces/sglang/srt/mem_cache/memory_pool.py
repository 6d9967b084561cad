# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Of sglang/srt/mem_cache/memory_pool.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class KVWriteLoc:
    loc: torch.Tensor
    swa_loc: torch.Tensor | None = None
    full_loc: torch.Tensor | None = None
    physical: bool = False

    @classmethod
    def for_batch(
        cls,
        forward_batch: Any,
        *,
        swa_loc: torch.Tensor | None = None,
        full_loc: torch.Tensor | None = None,
    ) -> KVWriteLoc:
        return cls(forward_batch.out_cache_loc, swa_loc, full_loc)


class ReqToTokenPool:
    def __init__(self, size: int, max_context_len: int) -> None:
        self.req_to_token = torch.zeros(size, max_context_len, dtype=torch.int32)


class MHATokenToKVPool:
    """Slots for tokens: [size + page_size, head_num, head_dim] for each layer."""

    def __init__(
        self,
        size: int,
        page_size: int,
        dtype: torch.dtype,
        head_num: int,
        head_dim: int,
        layer_num: int,
        v_head_dim: int | None = None,
    ) -> None:
        shape = layer_num, size + page_size, head_num
        self.k_buffer = torch.zeros(*shape, head_dim, dtype=dtype)
        self.v_buffer = torch.zeros(*shape, v_head_dim or head_dim, dtype=dtype)

    def get_key_buffer(self, layer_id: int) -> torch.Tensor:
        return self.k_buffer[layer_id]

    def get_value_buffer(self, layer_id: int) -> torch.Tensor:
        return self.v_buffer[layer_id]

    def set_kv_buffer(
        self, layer: Any, loc_info: KVWriteLoc, cache_k: torch.Tensor, cache_v: torch.Tensor
    ) -> None:
        self.k_buffer[layer.layer_id][loc_info.loc] = cache_k
        self.v_buffer[layer.layer_id][loc_info.loc] = cache_v
