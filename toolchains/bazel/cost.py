# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Seconds of processor time of compiles: as recorded on this machine, else estimated."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from toolchains.bazel.events import Plan, key_of

# Machine code from optimised IR: a member of a compile group.
_MEMBER = 0.3
# A kernel of our own: those of smoke took 0.8 to 1.1 s, those of norms 1.5 s.
_OWN, _NORM = 0.9, 1.5
_NAME = re.compile(r"fmha_(?P<kind>[a-z0-9_]+?)_d(?P<size>\d+)_")
# Those that names have another word for.
_KINDS = {"batch_prefill": "fwd_batch_prefill", "bwd": "bwd_dq_dk_dv"}


class Costs:
    """Of the compiles of a build.

    recorded  events.key_of an output -> seconds, of earlier builds
    plan      of the build
    """

    def __init__(self, recorded: Mapping[str, float], plan: Plan) -> None:
        self._recorded = recorded
        self._figures = plan.figures
        groups = plan.kernels.items()
        self._group_of = {key_of(output): key_of(group) for output, group in groups if group}
        self._members = Counter(self._group_of.values())

    def of(self, output: str) -> float:
        key = key_of(output)
        if key in self._recorded:
            return self._recorded[key]
        if key in self._group_of:
            return _MEMBER
        return self._estimate(key, self._members[key])

    def _estimate(self, key: str, members: int) -> float:
        """By the figures of compile_cost.toml, which are of upstream's kernels."""
        name = _NAME.search(key)
        entry = self._figures.get(_KINDS.get(name["kind"], name["kind"])) if name else None
        if not name or not entry:
            return _NORM if "kernels/norm/" in key else _OWN
        factors = sorted((int(most), float(by)) for most, by in entry["head_sizes"].items())
        fitting = [by for most, by in factors if int(name["size"]) <= most] or [factors[-1][1]]
        others = max(members - 1, 0)
        return fitting[0] * (float(entry["alone"]) + float(entry["sibling"]) * others)
