# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""vLLM's attention backend AITER_ATTN: what it takes, a batch's description, the computation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionImpl,
    AttentionMetadata,
    AttentionMetadataBuilder,
    AttentionType,
    CommonAttentionMetadata,
    MultipleOf,
)

from aiter_attn import flash_attn_varlen_func, flash_attn_with_kvcache
from aiter_attn._core.errors import UnsupportedError
from aiter_attn.vllm import NAME

__all__ = ["Backend", "Builder", "Implementation", "Metadata"]

_ELSE = "select another --attention-backend, such as TRITON_ATTN"
# Attention of an encoder's layers: over the call's own keys, without a cache.
_OWN_KEYS = (AttentionType.ENCODER, AttentionType.ENCODER_ONLY)


class Backend(AttentionBackend):  # type: ignore[misc]  # the server has no types here
    """The answers to vLLM's questions; vLLM refuses a model by name where one of them is no.

    vLLM's own answers say no to fp8 caches, MLA, prefixes of images, bidirectional decoders and
    contexts that are spread over GPUs.
    """

    forward_includes_kv_cache_update = False

    @staticmethod
    def get_name() -> str:
        return NAME

    @staticmethod
    def get_impl_cls() -> type[Implementation]:
        return Implementation

    @staticmethod
    def get_builder_cls() -> type[Builder]:
        return Builder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec: Any = None) -> list[MultipleOf]:
        """Pages are multiples of the kernels' tile of keys."""
        small = kv_cache_spec is not None and kv_cache_spec.head_size <= 64
        return [MultipleOf(64 if small else 128)]

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        return 0 < head_size <= 256 and head_size % 8 == 0

    @classmethod
    def supports_sink(cls) -> bool:
        return True

    @classmethod
    def supports_sliding_window(cls) -> bool:
        return True

    @classmethod
    def supports_attn_type(cls, attn_type: str) -> bool:
        return attn_type in (AttentionType.DECODER, *_OWN_KEYS)

    @classmethod
    def supports_device_cpu_query_lens_mismatch(cls) -> bool:
        """Decoding is told from prefill by the lengths that the host knows."""
        return False

    @classmethod
    def supports_combination(
        cls,
        head_size: int,
        dtype: torch.dtype,
        kv_cache_dtype: str | None,
        *others: Any,
        **named: Any,
    ) -> str | None:
        if kv_cache_dtype in (None, "auto", str(dtype).removeprefix("torch.")):
            return None
        return f"kv_cache_dtype {kv_cache_dtype} with {dtype}; allowed: auto"


@dataclass
class Metadata(AttentionMetadata):  # type: ignore[misc]
    """A batch, the requests one after the other."""

    num_actual_tokens: int  # of all requests, without padding
    max_query_len: int
    max_seq_len: int  # or more
    query_start_loc: torch.Tensor  # int32 [requests + 1]
    key_start_loc: torch.Tensor  # int32 [requests + 1]: the same of the keys in the cache
    seq_lens: torch.Tensor  # int32 [requests]: keys of each, the new ones among them
    block_table: torch.Tensor  # int32 [requests, pages of a request]
    slot_mapping: torch.Tensor  # [tokens]: page * page size + place in the page; -1: padding
    causal: bool | torch.Tensor


class Builder(AttentionMetadataBuilder[Metadata]):  # type: ignore[misc]
    """Makes a batch's description, once for all layers. Graphs are not captured with it."""

    def __init__(
        self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device
    ) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)

    def build(
        self,
        common_prefix_len: int,
        common_attn_metadata: CommonAttentionMetadata,
        fast_build: bool = False,
    ) -> Metadata:
        batch = common_attn_metadata
        ends = batch.seq_lens.cumsum(0, dtype=torch.int32)
        return Metadata(
            # The batch's own number counts padding, too.
            num_actual_tokens=int(batch.query_start_loc_cpu[-1]),
            max_query_len=batch.max_query_len,
            max_seq_len=batch.max_seq_len,
            query_start_loc=batch.query_start_loc,
            key_start_loc=torch.nn.functional.pad(ends, (1, 0)),
            seq_lens=batch.seq_lens,
            block_table=batch.block_table_tensor.contiguous(),
            slot_mapping=batch.slot_mapping,
            causal=batch.causal,
        )


class Implementation(AttentionImpl[Metadata]):  # type: ignore[misc]
    """The attention of one layer."""

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi_slopes: list[float] | None = None,
        sliding_window: int | None = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: float | None = None,
        attn_type: str = AttentionType.DECODER,
        kv_sharing_target_layer_name: str | None = None,
        sinks: torch.Tensor | None = None,
    ) -> None:
        """
        Args:
            alibi_slopes: one for each query head.
            sliding_window: how many keys a query sees, its own among them.
            sinks: [num_heads], of any dtype: the sink of aiter_attn.flash_attn_func.

        Raises UnsupportedError: a quantised cache, or another attn_type than Backend takes.
        """
        if kv_cache_dtype not in Backend.supported_kv_cache_dtypes:
            raise UnsupportedError(
                f"kv_cache_dtype: {kv_cache_dtype}; allowed: "
                f"{', '.join(Backend.supported_kv_cache_dtypes)}; set --kv-cache-dtype auto"
            )
        if not Backend.supports_attn_type(attn_type):
            raise UnsupportedError(
                f"attn_type: {attn_type}; allowed: decoder, encoder, encoder_only; {_ELSE}"
            )
        self.num_heads = num_heads
        self.head_size = head_size
        self.scale = float(scale)
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.kv_cache_dtype = kv_cache_dtype
        self.attn_type = attn_type
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        self.sinks = sinks
        self._causal = attn_type not in _OWN_KEYS
        left = -1 if sliding_window is None else sliding_window - 1
        self._window = (left, 0 if self._causal and left >= 0 else left)
        self._softcap = logits_soft_cap or 0.0
        self._slopes = None
        if alibi_slopes is not None:
            self._slopes = torch.tensor(alibi_slopes, dtype=torch.float32)

    def do_kv_cache_update(
        self,
        layer: Any,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> None:
        """Writes keys and values [tokens, heads, head_size] to their slots, without waiting for
        the device. Rows of padding write to vLLM's null block, page 0, what is there."""
        if not self._causal:
            return
        is_row = (slot_mapping >= 0)[:, None, None]
        slots = slot_mapping.clamp(min=0)
        for pages, new in zip(self._pages(kv_cache), (key, value), strict=True):
            place = slots // pages.shape[1], slots % pages.shape[1]
            rows = new[: len(slots)].to(pages.dtype)
            pages[place] = torch.where(is_row, rows, pages[place])

    def forward(
        self,
        layer: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        attn_metadata: Metadata | None,
        output: torch.Tensor,
        output_scale: torch.Tensor | None = None,
        output_block_scale: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Attention of a batch, prefill and decoding in any mixture.

        Args:
            query: [tokens, num_heads, head_size]
            key, value: [tokens, num_kv_heads, head_size]: read by layers of encoders; others read
                the cache, which has them, and may have None here.
            kv_cache: [pages, num_kv_heads, page_size, 2 * head_size], with any strides of the first
                three.
            attn_metadata: None while vLLM measures memory: output becomes 0.
            output: [tokens, num_heads, head_size], which is written; rows of padding are left.

        Returns:
            output.

        Raises:
            UnsupportedError: a quantised output, a cache that is packed otherwise, or a decoder's
                layer that is not causal. The others: see aiter_attn.flash_attn_varlen_func.
        """
        if output_scale is not None or output_block_scale is not None:
            raise UnsupportedError(
                "output_scale: given, for a quantised output; allowed: None; set vLLM's "
                "compilation option fuse_attn_quant to false"
            )
        if attn_metadata is None:
            return output.zero_()
        batch = attn_metadata
        if self._causal and batch.causal is not True:
            raise UnsupportedError(
                f"causal: {batch.causal} in a decoder's layer; allowed: True; {_ELSE}"
            )
        tokens, starts = batch.num_actual_tokens, batch.query_start_loc
        rows = query[:tokens]
        options: dict[str, Any] = {
            "softmax_scale": self.scale,
            "causal": self._causal,
            "window_size": self._window,
            "softcap": self._softcap,
            "alibi_slopes": self._slopes_on(query.device),
            "sink": None if self.sinks is None else self.sinks.float(),
        }
        if not self._causal:
            longest = batch.max_query_len
            packed = rows, key[:tokens], value[:tokens]
            out = flash_attn_varlen_func(*packed, starts, starts, longest, longest, **options)
        elif batch.max_query_len == 1 and tokens == len(batch.seq_lens):
            out = flash_attn_with_kvcache(
                rows[:, None],
                *self._pages(kv_cache),
                cache_seqlens=batch.seq_lens,
                block_table=batch.block_table,
                **options,
            )
        else:
            pages = self._pages(kv_cache)
            room = batch.block_table.shape[1] * pages[0].shape[1]
            out = flash_attn_varlen_func(
                rows,
                *pages,
                starts,
                batch.key_start_loc,
                batch.max_query_len,
                min(batch.max_seq_len, room),
                block_table=batch.block_table,
                **options,
            )
        output[:tokens].copy_(out.view(output[:tokens].shape))
        return output

    def _pages(self, kv_cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values, [pages, page_size, num_kv_heads, head_size] each."""
        heads, size = self.num_kv_heads, self.head_size
        if kv_cache.dim() != 4 or kv_cache.shape[1] != heads or kv_cache.shape[3] != 2 * size:
            raise UnsupportedError(
                f"kv_cache: shape {tuple(kv_cache.shape)}; allowed: [pages, {heads}, page size, "
                f"{2 * size}], keys and values of one head size; {_ELSE}"
            )
        keys, values = kv_cache.transpose(1, 2).split(size, dim=3)
        return keys, values

    def _slopes_on(self, device: torch.device) -> torch.Tensor | None:
        if self._slopes is not None and self._slopes.device != device:
            self._slopes = self._slopes.to(device)
        return self._slopes
