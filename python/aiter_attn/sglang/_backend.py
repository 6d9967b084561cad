# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""SGLang's attention backend aiter_attn: each batch's page list, and attention by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from sglang.srt.layers.attention.base_attn_backend import AttentionBackend
from sglang.srt.layers.radix_attention import AttentionType
from sglang.srt.mem_cache.memory_pool import KVWriteLoc

from aiter_attn import mha_batch_prefill
from aiter_attn._core.errors import UnsupportedError

__all__ = ["Backend", "Pages"]

_ELSE = "select another --attention-backend, such as triton"
_NO_GRAPHS = "--cuda-graph-backend-decode disabled --cuda-graph-backend-prefill disabled"
# Kernels read so many entries behind the list's last.
_READ_AHEAD = 159


@dataclass(frozen=True)
class Pages:
    """The queries and keys of a batch, the requests one after the other."""

    cu_seqlens_q: torch.Tensor  # int32 [requests + 1]
    kv_indptr: torch.Tensor  # int32 [requests + 1]
    kv_indices: torch.Tensor  # int32: the slot of each key in the cache, and _READ_AHEAD further
    max_seqlen_q: int
    max_seqlen_k: int


def _starts(lengths: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))


class Backend(AttentionBackend):  # type: ignore[misc]  # the server has no types here
    """Attention of all layers of a model. A page of the cache may have any number of keys."""

    def __init__(self, runner: Any) -> None:
        super().__init__()
        refused = {
            "MLA": (runner.use_mla_backend, _ELSE),
            "an encoder beside a decoder": (runner.model_config.is_encoder_decoder, _ELSE),
            "a cache of its own for sliding windows": (
                runner.is_hybrid_swa,
                "set --disable-hybrid-swa-memory",
            ),
            f"a cache of {runner.kv_cache_dtype} for a model of {runner.dtype}": (
                runner.kv_cache_dtype != runner.dtype,
                "set --kv-cache-dtype auto",
            ),
        }
        for feature, (is_there, next_step) in refused.items():
            if is_there:
                raise UnsupportedError(
                    f"{feature}: not served by the attention backend aiter_attn; allowed: a "
                    f"decoder over one cache of its own dtype; {next_step}"
                )
        self._requests = runner.req_to_token_pool
        self._cache = runner.token_to_kv_pool
        self.forward_metadata: Any = None  # Pages, of the batch that is computed

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int) -> None:
        raise UnsupportedError(
            f"graphs: asked for, of up to {max_bs} requests; allowed: none, as a page list is as "
            f"long as its batch; set {_NO_GRAPHS}"
        )

    def init_forward_metadata(self, forward_batch: Any) -> None:
        """Lists the keys of a batch, for all of its layers, without waiting for the device.

        Raises UnsupportedError for a batch of speculative decoding, or of diffusion.
        """
        batch, mode = forward_batch, forward_batch.forward_mode
        if mode.is_idle():
            return
        is_served = mode.is_decode() or mode.is_extend_or_draft_extend_or_mixed()
        if not is_served or batch.spec_info is not None:
            what = mode.name if batch.spec_info is None else f"{mode.name}, speculative"
            raise UnsupportedError(
                f"forward_mode: {what}; allowed: DECODE, EXTEND, MIXED, SPLIT_PREFILL, without "
                f"speculative decoding; {_ELSE}"
            )
        lengths = batch.seq_lens
        if mode.is_decode():
            queries, longest = torch.ones_like(lengths), 1
        else:
            queries, longest = batch.extend_seq_lens, max(batch.extend_seq_lens_cpu)
        self.forward_metadata = Pages(
            cu_seqlens_q=_starts(queries),
            kv_indptr=_starts(lengths),
            kv_indices=self._slots(batch),
            max_seqlen_q=longest,
            max_seqlen_k=int(batch.seq_lens_cpu.max()),
        )

    def _slots(self, batch: Any) -> torch.Tensor:
        lengths, total = batch.seq_lens, int(batch.seq_lens_cpu.sum())
        device = lengths.device
        number = torch.arange(len(lengths), device=device)
        request = torch.repeat_interleave(number, lengths, output_size=total)
        place = torch.arange(total, device=device) - _starts(lengths)[request]
        slots = self._requests.req_to_token[batch.req_pool_indices[request], place].int()
        # Its keys are finite numbers, as are those of each slot in use.
        return torch.cat([slots, slots[:1].expand(_READ_AHEAD)])

    def forward_extend(
        self,
        q: torch.Tensor,
        k: torch.Tensor | None,
        v: torch.Tensor | None,
        layer: Any,
        forward_batch: Any,
        save_kv_cache: bool = True,
        sinks: torch.Tensor | None = None,
        **others: Any,
    ) -> torch.Tensor:
        """Attention of a layer, over the cache, to which the new keys are written first.

        Args:
            q: [tokens, heads_q * head_size], or with heads as a dimension.
            k: [tokens, heads_k, head_size]
            v: [tokens, heads_k, head_size_v]
            layer: a RadixAttention, whose sliding_window_size counts the keys before a query's own.
            save_kv_cache: False: the cache has k and v.
            sinks: [heads_q], of any dtype: the sink of aiter_attn.flash_attn_func.

        Returns:
            [tokens, heads_q * head_size_v]

        Raises:
            UnsupportedError: a layer, an argument or a cache's layout that is not served. The
                others: see aiter_attn.mha_batch_prefill.
        """
        pages = self.forward_metadata
        _check_layer(layer)
        given = sorted(x for x, value in others.items() if value is not None and value is not False)
        if given:
            raise UnsupportedError(f"{', '.join(given)}: given; allowed: sinks alone; {_ELSE}")
        if save_kv_cache and k is not None:
            self._cache.set_kv_buffer(layer, KVWriteLoc.for_batch(forward_batch), k, v)
        keys = self._cache.get_key_buffer(layer.layer_id)
        values = self._cache.get_value_buffer(layer.layer_id)
        if keys.dim() != 3:
            raise UnsupportedError(
                f"the cache's layout: keys of shape {tuple(keys.shape)}; allowed: [slots, heads, "
                "head size]; leave SGLANG_USE_HND_KVCACHE unset, and set no other layout"
            )
        is_causal = layer.attn_type != AttentionType.ENCODER_ONLY
        window = layer.sliding_window_size if is_causal else -1
        out = mha_batch_prefill(
            q.reshape(-1, layer.tp_q_head_num, layer.qk_head_dim),
            keys,
            values,
            pages.cu_seqlens_q,
            pages.kv_indptr,
            pages.kv_indices,
            pages.max_seqlen_q,
            pages.max_seqlen_k,
            softmax_scale=layer.scaling,
            causal=is_causal,
            window_size=(window, 0) if window >= 0 else (-1, -1),
            softcap=layer.logit_cap or 0.0,
            sink=None if sinks is None else sinks.float(),
        )
        return out.flatten(1)

    # Decoding is prefill of one query in each request.
    forward_decode = forward_extend

    def support_triton(self) -> bool:
        return False


def _check_layer(layer: Any) -> None:
    refused = {
        "is_cross_attention": layer.is_cross_attention,
        f"attn_type {layer.attn_type.name}": layer.attn_type == AttentionType.DECODER_BIDIRECTIONAL,
        f"pos_encoding_mode {layer.pos_encoding_mode}": layer.pos_encoding_mode != "NONE",
        f"logit_capping_method {layer.logit_capping_method}": (
            layer.logit_cap > 0 and layer.logit_capping_method != "tanh"
        ),
        "xai_temperature_len": layer.xai_temperature_len > 0,
    }
    for feature, is_there in refused.items():
        if is_there:
            raise UnsupportedError(
                f"layer {layer.layer_id}: {feature}; allowed: attention of a decoder or an encoder "
                f"to its own keys, without positions, with a cap by tanh; {_ELSE}"
            )
