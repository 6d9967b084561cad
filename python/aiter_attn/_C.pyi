# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The extension module (python/extension/module.cc)."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, TypedDict

from typing_extensions import Buffer

DEVICE_CPU: Final[int]
DEVICE_CUDA: Final[int]
DEVICE_ROCM: Final[int]
MODE_BATCH: Final[int]
MODE_GROUP: Final[int]
DTYPES: Final[dict[str, int]]
FORWARD_FP8_DTYPES: Final[dict[str, int]]
V_ROWS: Final[int]
V_COLUMNS: Final[int]
MASK_NONE: Final[int]
MASK_BOTTOM_RIGHT: Final[int]
BIASES: Final[dict[str, int]]
# The bits of dbias's sums: over batch, heads, queries.
DBIAS_SUMS: Final[tuple[int, int, int]]
FP8_DTYPES: Final[dict[str, int]]
ROTARY_HALVES: Final[int]
ROTARY_INTERLEAVED: Final[int]
NORM_LAYER: Final[int]
NORM_RMS: Final[int]
NORM_SCALES_ROWS: Final[int]
NORM_SCALES_BLOCKS: Final[int]
# The options of a problem, each a 0 of its type.
NORM_OPTIONS: Final[dict[str, int | float]]
SOFTMAX_OPTIONS: Final[dict[str, int | float]]
SOFTMAX_MASK_NONE: Final[int]
SOFTMAX_MASK_EXPLICIT: Final[int]
SOFTMAX_MASK_CAUSAL: Final[int]
STATUS: Final[dict[str, int]]
# The address of const void* find(const char* name): a function of the C ABI by its name without
# attn_, or NULL.
FIND_FUNCTION: Final[int]

class Tensor:
    @staticmethod
    def from_dlpack(capsule: object) -> Tensor: ...
    @staticmethod
    def from_buffer(buffer: Buffer, dtype: str) -> Tensor: ...
    def seen_as(self, dtype: str) -> Tensor: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def device(self) -> tuple[int, int]: ...
    @property
    def address(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    def overlaps(self, other: Tensor) -> bool: ...
    def entry(self, dimension: int, index: int) -> Tensor: ...
    def number(self, index: int) -> int: ...
    def only_number(self) -> float | None: ...
    def is_contiguous(self, dimensions: int) -> bool: ...
    def fits(self, shape: tuple[int, ...], dtype: str, dimensions: int, written: bool) -> bool: ...

class Problem:
    """attn_problem, in host memory until on() puts a copy elsewhere; and the options of
    attn_fwd_args and attn_bwd_args: fields that aiter/fields.h calls extents and options, by their
    names. Those that are not given are 0. Raises TypeError for another name."""

    def __init__(self, **numbers: float) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def options(self) -> dict[str, int | float]:
        """The options of attn_problem (aiter/fields.h), by their names."""

    def with_dropout(self, seed: int, offset: int) -> Problem: ...
    def on(self, device_type: int, device_id: int, stream: int) -> Problem: ...

class Kernel(TypedDict):
    name: str
    arch: str
    key: str
    kind: str
    code_object_size: int
    embedded_size: int
    provider: str

# The exceptions' classes; _errors.py says them. An exception that is raised has two attributes, as
# attn_last_error_field and attn_last_error_index tell them: field, by its name in aiter/attn.h, but
# for out, and index.
def set_errors(by_status: dict[int, type[Exception]], other: type[Exception]) -> None: ...
def version() -> str: ...
def abi_version() -> int: ...

# The arrays by the names of their arguments in the package.
def fwd(problem: Problem, arrays: dict[str, Tensor]) -> None: ...
def bwd(problem: Problem, arrays: dict[str, Tensor]) -> None: ...

class PreparedForward:
    """A forward pass that was checked with these arrays, for others that lie as they do."""

    def __init__(self, problem: Problem, arrays: dict[str, Tensor]) -> None: ...
    def run(self, q: int, k: int, v: int, out: int, lse: int, stream: int) -> None:
        """Addresses, and the stream's handle; 0 in host memory."""

class PreparedBackward:
    """The same of a backward pass."""

    def __init__(self, problem: Problem, arrays: dict[str, Tensor]) -> None: ...
    def run(
        self,
        inputs: Sequence[int],
        gradients: Sequence[int],
        workspace: int,
        workspace_bytes: int,
        stream: int,
    ) -> None:
        """inputs: addresses of q, k, v, out, lse, dout; gradients: of dq, dk, dv."""

def dropout_mask(problem: Problem, arrays: dict[str, Tensor]) -> None: ...
def bwd_workspace_size(problem: Problem) -> int: ...

# numbers: fields of attn_kvcache and of the args; arrays: by their names in aiter/attn.h, but for
# out, and for plans the names of those that the call has. appended: the same for what is appended
# first.
def kvcache_fwd(
    problem: Problem,
    numbers: dict[str, int],
    arrays: dict[str, Tensor],
    appended: tuple[dict[str, int], dict[str, Tensor]] | None = None,
) -> None: ...
def kvcache_fwd_workspace_size(
    problem: Problem, numbers: dict[str, int], arrays: dict[str, Tensor]
) -> int: ...
def plan_kvcache_fwd(
    problem: Problem,
    numbers: dict[str, int],
    arrays: list[str],
    arch: str | None,
    appended: tuple[dict[str, int], dict[str, Tensor]] | None = None,
) -> list[int]: ...
def explain_kvcache_fwd(
    problem: Problem,
    numbers: dict[str, int],
    arrays: list[str],
    arch: str | None,
    appended: tuple[dict[str, int], dict[str, Tensor]] | None = None,
) -> str: ...

# Fields of the problem and arrays of the call, by their names in aiter/norm.h.
def norm_fwd(numbers: dict[str, int | float], arrays: dict[str, Tensor]) -> None: ...
def norm_bwd(numbers: dict[str, int | float], arrays: dict[str, Tensor]) -> None: ...

class Watcher:
    """Whether anything of torch but autograd would notice a call. Its functions are torch's."""

    def __init__(
        self,
        *,
        modes: Callable[[], int],
        thread_keys: Callable[[], Any],
        plain_threads: Collection[int],
        forward_ad: Any,
        is_profiled: Callable[[], bool],
        keys: Callable[[Any], Any],
        plain: Collection[int],
        is_plain: Callable[[Any], bool],
        is_grad_enabled: Callable[[], bool],
        classes: tuple[type, ...],
    ) -> None:
        """plain_threads, plain: dispatch keys, as bits, of what is not watched. is_plain: of a
        tensor with other keys. forward_ad: has _current_level, below 0 where it is off."""
    def watches(self, tensors: Sequence[Any]) -> bool:
        """tensors, or None, of a call in this thread."""

class PreparedRows:
    """A call that was checked with these arrays, for tensors that lie as they do."""

    def __init__(
        self,
        numbers: dict[str, int | float],
        arrays: dict[str, Tensor],
        names: Sequence[str],
        made: Sequence[tuple[Any, tuple[int, ...], Any] | None],
        results: int,
        index: int,
        functions: dict[str, Callable[..., Any] | None],
    ) -> None:
        """names: of the arrays: those given, those made, and the barrier if there is one. made:
        shape, strides and dtype of each that is made, None of one that is not; the first `results`
        of them are a call's results. index: of a GPU; -1: in host memory. functions:
        python/extension/torch_calls.h."""

class PreparedNorm(PreparedRows): ...
class PreparedNormBackward(PreparedRows): ...
class PreparedSoftmax(PreparedRows): ...
class PreparedSoftmaxBackward(PreparedRows): ...

class PreparedCalls:
    """The calls of one operation that were prepared. given: its tensors, or None, then numbers."""

    def __init__(
        self,
        watcher: Watcher | None,
        kept: dict[Any, Any],
        name: str,
        tensors: int,
        by_class: Sequence[int],
        differentiable: Callable[..., Any] | None,
    ) -> None:
        """watcher None: all is watched. kept: by signature. tensors: how many a call has. by_class:
        places of those of which the class alone is looked at. differentiable: is called where
        autograd records; None: no prepared call is."""
    def signature(self, *given: Any) -> tuple[Any, ...]:
        """All of a call but its tensors' addresses and contents."""
    def run(self, *given: Any) -> Any:
        """The results as a tuple; None where no such call was prepared."""
    def run_unwatched(self, *given: Any) -> Any:
        """run(), or what differentiable() gives; None, too, where something watches, or a number is
        neither float nor bool."""

def norm_bwd_workspace_size(numbers: dict[str, int | float], arrays: dict[str, Tensor]) -> int: ...
def softmax_fwd(numbers: dict[str, int | float], arrays: dict[str, Tensor]) -> None: ...
def softmax_bwd(numbers: dict[str, int | float], arrays: dict[str, Tensor]) -> None: ...

# Indices of kernel_info, and text. arch None: of the problem's device. sink: whether the call has
# one, whose gradient a backward pass gives.
def plan_fwd(problem: Problem, arch: str | None, sink: bool = False) -> list[int]: ...
def plan_bwd(problem: Problem, arch: str | None, sink: bool = False) -> list[int]: ...
def explain_fwd(problem: Problem, arch: str | None, sink: bool = False) -> str: ...
def explain_bwd(problem: Problem, arch: str | None, sink: bool = False) -> str: ...
def kernel_count() -> int: ...
def kernel_info(index: int) -> Kernel: ...
def code_object(key: str) -> bytes: ...
def fetch_code_object(key: str) -> bool:
    """Fetches it where a server has it: whether it is to be had now without a compile."""

def find_code_object(key: str) -> tuple[str | None, str]:
    """The first provider that has it, and a line for each that is asked."""

def set_cache_dir(folder: str | None) -> None: ...
def cache_dir() -> str: ...
def warm_up(kernels: Sequence[int]) -> None: ...
def warm_up_wait(kernels: Sequence[int], milliseconds: int) -> int:
    """The number of kernels that are still to be made. milliseconds -1: without a limit."""

def driver_info(device_type: int) -> str: ...
def set_kernels(kernels: str | None) -> None: ...
