# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The cost of building variant sets from nothing, and the time that it takes on a cluster.

    ./bazelw run //kernels:cluster [-- --variants=full --archs=gfx942,... --page=FILE]
    ./bazelw run //kernels:cluster -- --sizes=LOG

Nothing is built. Prints actions, processor time and bytes in a cache; then, for compile groups of
up to 8, 4, 2 members and none, the time on 1 to 1,000 workers of one processor each: a simulation
of list scheduling over the actions of graph.py. `--page` writes that as a page with plots; with
prices, and with the time of real builds, too. Seconds are those of
kernels/ck_fmha/groups/compile_cost.toml and of figures.toml.

`--sizes` prints the sizes of figures.toml anew, of a file that Bazel wrote for
--execution_log_compact_file.
"""

from __future__ import annotations

import collections
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from absl import app, flags

from kernels.archs.archs import read_archs
from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.groups.cost import FIGURES as COSTS
from kernels.ck_fmha.groups.cost import CostModel
from kernels.cluster import page
from kernels.cluster.graph import FIGURES, Figures, graph, instances
from kernels.cluster.schedule import Costs
from kernels.cluster.simulation import Simulation, simulate
from kernels.matrix.choice import ChoiceError, chosen, variant_set_files
from kernels.matrix.counts import Row
from kernels.variants.values import VariantSetError
from toolchains.report import execution_log

_VARIANTS = flags.DEFINE_list("variants", ["full"], "variant sets, each by itself")
_ARCHS = flags.DEFINE_list("archs", None, "archs, all in one build; default: all")
_PAGE = flags.DEFINE_string("page", None, "file to write plots to")
_ACTION = flags.DEFINE_float("action_seconds", 0.3, "of each action, on its worker", 0)
_ASKED = flags.DEFINE_float("client_seconds", 0.004, "between actions that the client starts", 0)
_WORKER = flags.DEFINE_float("worker_seconds", 30, "before a worker's first action", 0)
_SIZES = flags.DEFINE_string("sizes", None, "a compact execution log; prints sizes instead")

# By Bazel.
_POOL = flags.DEFINE_string("pool", None, "pool.json of @ck_fmha", required=True)
_README = flags.DEFINE_string("readme", None, "README.md beside the variant sets", required=True)
_ARCHS_FILE = flags.DEFINE_string("archs_file", None, "archs.json of @archs", required=True)
_CHART_JS = flags.DEFINE_string("chart_js", None, "file of Chart.js", required=True)

_INSTANCE = re.compile(r"/(fmha_[^/]+?)(?:\.grouped)?(?:\.gfx\w+)?\.(hsaco|bc)$")


def sizes(spawns: Iterable[execution_log.Spawn], rows: Mapping[str, Row]) -> str:
    """The sizes of figures.toml, of the code objects and modules of a build."""
    found: dict[tuple[str, int], dict[str, list[int]]] = collections.defaultdict(
        lambda: {"hsaco": [], "bc": []}
    )
    for path, size in (output for spawn in spawns for output in spawn.outputs):
        if (name := _INSTANCE.search(path)) and name[1] in rows:
            row = rows[name[1]]
            head_size = max(row["traits"]["head_size_qk"], row["traits"]["head_size_v"])
            found[row["kind"], head_size][name[2]].append(size)
    lines: list[str] = []
    kind = ""
    for (of, head_size), by_form in sorted(found.items()):
        if not by_form["hsaco"]:
            continue
        if of != kind:
            kind = of
            lines += ["", f"[sizes.{kind}]"]
        code_object = sum(by_form["hsaco"]) // len(by_form["hsaco"])
        modules = by_form["bc"]
        module = sum(modules) // len(modules) if modules else 2 * code_object
        lines.append(f"{head_size} = [{code_object}, {module}]")
    return "\n".join(lines)


def _run() -> None:
    pool = RecordedPool(Path(_POOL.value).read_text("utf-8"))
    if _SIZES.value:
        print(sizes(execution_log.read(_given(_SIZES.value)), pool.rows))
        return
    known_archs = sorted(read_archs(_ARCHS_FILE.value))
    files = variant_set_files(Path(_README.value))
    names = chosen(_VARIANTS.value, list(files), "variants", "variant set")
    archs = chosen(
        known_archs if _ARCHS.value is None else _ARCHS.value, known_archs, "archs", "arch"
    )
    figures = Figures.read(FIGURES.read_text("utf-8"))
    model = CostModel(COSTS.read_text("utf-8"), pool.rows)
    costs = Costs(action=_ACTION.value, asked=_ASKED.value, worker=_WORKER.value)
    simulations: list[Simulation] = []
    for name in names:
        rows = instances(name, files[name], pool, archs)
        simulations.append(
            simulate(
                f"{name} for {', '.join(archs)}",
                lambda most, of=rows: graph(of, pool, model, figures, most),
                figures,
                costs,
            )
        )
        print(simulations[-1].text())
    if _PAGE.value:
        to = _given(_PAGE.value)
        to.write_text(page.page(simulations, figures, Path(_CHART_JS.value)), "utf-8")
        print(to)


def _given(name: str) -> Path:
    """A path that the user gave, from where the user is."""
    return Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), name)


def main(arguments: Sequence[str]) -> int:
    if arguments[1:]:
        raise app.UsageError(f"what is {arguments[1]!r}? See --help")
    try:
        _run()
    except (ChoiceError, VariantSetError, OSError, ValueError) as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    app.run(main)
