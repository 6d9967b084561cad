# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The page of simulated builds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from kernels.cluster.graph import Figures, Measured
from kernels.cluster.simulation import Simulation, duration
from toolchains.pages import pages
from toolchains.pages.pages import Plot

_HEADS = ("Most members", "CPU h", "GB", "Actions", "Longest chain", "Workers", "Time", "Busy")


def page(simulations: Sequence[Simulation], figures: Figures, chart_js: Path) -> str:
    body: list[str] = [
        "<p class=mild>A simulation: list scheduling over the actions of the build, with estimated "
        "times of compiles; docs/scale.md says of what. A worker has one processor.</p>"
    ]
    drawn: list[Plot] = []
    for simulation in simulations:
        of = _plots(simulation, figures.prices)
        body += [
            f"<h2>{escape(simulation.title)}</h2>",
            pages.plots(of, first=len(drawn)),
            _table(simulation),
        ]
        drawn += of
    real = [_real(figures.clusters)]
    body += [
        "<h2>Real clusters</h2>",
        "<p class=mild>Actions with the times and the order of those of a wheel, executed by real "
        "workers, and simulated; docs/scale.md says how.</p>",
        pages.plots(real, first=len(drawn)),
    ]
    drawn += real
    return pages.page("Builds on a cluster", "\n".join(body), drawn, chart_js)


def _real(clusters: Sequence[Measured]) -> Plot:
    return Plot(
        "Time of a build by workers: real, and simulated",
        "line",
        [str(one.workers) for one in clusters],
        {
            "real": [one.real for one in clusters],
            "simulated": [one.simulated for one in clusters],
        },
        x="workers",
        y="seconds",
    )


def _plots(simulation: Simulation, prices: Mapping[str, float]) -> list[Plot]:
    whole = next(iter(simulation.cuts.values()))
    workers = list(whole.walls)
    labels = [f"{number:,}" for number in workers]
    return [
        Plot(
            "Time by workers and by the members of a compile group",
            "line",
            labels,
            {
                f"up to {most}" if most > 1 else "alone": [
                    round(cut.walls[number] / 60, 2) for number in workers
                ]
                for most, cut in simulation.cuts.items()
            },
            x="workers",
            y="minutes",
            log=True,
        ),
        Plot(
            "Price of a build, by workers that are rented for its time",
            "line",
            labels,
            {
                f"{name}, {price} $ an hour": [
                    round(whole.price(number, price), 2) for number in workers
                ]
                for name, price in prices.items()
            },
            x="workers",
            y="US dollars",
        ),
        Plot(
            "Processor time by kind of action",
            "bar",
            list(whole.seconds_of),
            {"CPU hours": [round(seconds / 3600, 2) for seconds in whole.seconds_of.values()]},
            x="CPU hours",
            y="kind",
            lying=True,
        ),
    ]


def _table(simulation: Simulation) -> str:
    rows: list[list[pages.Cell]] = [
        [
            most,
            round(cut.seconds / 3600, 1),
            round(cut.bytes / 1e9, 2),
            sum(cut.actions.values()),
            duration(cut.critical),
            number,
            duration(wall),
            f"{cut.seconds / number / wall:.0%}",
        ]
        for most, cut in simulation.cuts.items()
        for number, wall in cut.walls.items()
    ]
    return pages.table(_HEADS, rows)
