# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The extension module (python/extension/module.cc)."""

from typing import Final, TypedDict

from typing_extensions import Buffer, CapsuleType

DEVICE_CPU: Final[int]
DEVICE_ROCM: Final[int]
DTYPES: Final[dict[str, int]]
MASK_NONE: Final[int]
MASK_BOTTOM_RIGHT: Final[int]
STATUS: Final[dict[str, int]]

class Tensor:
    @staticmethod
    def from_dlpack(capsule: CapsuleType) -> Tensor: ...
    @staticmethod
    def from_buffer(buffer: Buffer, dtype: str) -> Tensor: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> tuple[int, int]: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def data(self) -> int: ...

class Problem:
    device_type: int
    device_id: int
    stream: int
    dtype: int
    batch: int
    heads_q: int
    heads_k: int
    head_size_qk: int
    head_size_v: int
    seqlen_q: int
    seqlen_k: int
    total_q: int
    total_k: int
    softmax_scale: float
    mask: int
    window_left: int
    window_right: int

class Kernel(TypedDict):
    name: str
    arch: str
    key: str
    symbol: str
    kind: str
    code_object_size: int
    embedded_size: int

def version() -> str: ...
def abi_version() -> int: ...
def fwd(
    problem: Problem,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor | None,
    cu_seqlens_q: Tensor | None,
    cu_seqlens_k: Tensor | None,
) -> None: ...
def bwd(
    problem: Problem,
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    dq: Tensor,
    dk: Tensor,
    dv: Tensor,
    cu_seqlens_q: Tensor | None,
    cu_seqlens_k: Tensor | None,
    workspace: Tensor | None,
) -> None: ...
def bwd_workspace_size(
    problem: Problem,
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    dq: Tensor,
    dk: Tensor,
    dv: Tensor,
    cu_seqlens_q: Tensor | None,
    cu_seqlens_k: Tensor | None,
) -> int: ...
def kernels() -> list[Kernel]: ...
def code_object(key: str) -> bytes: ...
def driver_info(device_type: int) -> str: ...
