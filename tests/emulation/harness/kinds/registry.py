# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""All kinds, by the names that the table of traits has."""

from __future__ import annotations

from tests.emulation.harness.cases import Case
from tests.emulation.harness.kinds.append import Append
from tests.emulation.harness.kinds.attention import (
    BatchPrefill,
    Combine,
    Forward,
    ForwardV3,
    SplitKeys,
)
from tests.emulation.harness.kinds.backward import ConvertDq, DotDoO, Gradients
from tests.emulation.harness.kinds.dropout_mask import DropoutMask
from tests.emulation.harness.kinds.kind import Kind
from tests.emulation.harness.kinds.no_keys import NoKeys
from tests.emulation.harness.kinds.sinks import Sink, SinkGrad
from tests.emulation.harness.kinds.sum_heads import SumHeads
from tests.emulation.harness.launches import Instance

KINDS: dict[str, Kind] = {
    "fwd": Forward(),
    "fwd_splitkv": SplitKeys(),
    "fwd_splitkv_combine": Combine(),
    "fwd_pagedkv": Forward(),
    "fwd_v3": ForwardV3(),
    "fwd_appendkv": Append(),
    "fwd_batch_prefill": BatchPrefill(),
    "bwd_dot_do_o": DotDoO(),
    "bwd_dq_dk_dv": Gradients(),
    "bwd_convert_dq": ConvertDq(),
    "sum_heads": SumHeads(),
    "dropout_mask": DropoutMask(),
    "no_keys": NoKeys(),
    "sink": Sink(),
    "sink_grad": SinkGrad(),
}


def kind_of(instance: Instance) -> Kind:
    return KINDS[instance.kind]


def cases(instance: Instance) -> list[Case]:
    """All cases of an instance, that of several tiles first."""
    return kind_of(instance).cases(instance)
