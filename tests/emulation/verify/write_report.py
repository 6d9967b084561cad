# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes a verification as one JSON document and one HTML page that needs nothing else."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from absl import app, flags

from kernels.launch_table.traits import TABLE
from kernels.variants.values import spell
from tests.emulation import known_findings
from tests.emulation.verify.verdict import excused, judge
from toolchains.pages import pages

_PAGE = flags.DEFINE_string("page", None, "the page", required=True)
_DOCUMENT = flags.DEFINE_string("document", None, "the document", required=True)
_RESULTS = flags.DEFINE_multi_string("results", None, "of each code object", required=True)
_METADATA = flags.DEFINE_multi_string("metadata", None, "of each code object", required=True)
_DRAWN_FROM = flags.DEFINE_string(
    "drawn_from", None, "of the kernels that these were drawn from: values_of() of sample/draw.py"
)

FORMAT = 1

# Upstream's; kernels of our own have the words of their names, and take either mode.
_KINDS = {
    "fwd": "forward",
    "bwd_dot_do_o": "delta",
    "bwd_dq_dk_dv": "backward",
    "bwd_convert_dq": "dq",
    "fwd_splitkv": "forward, split keys",
    "fwd_splitkv_combine": "of split keys",
    "fwd_pagedkv": "forward, paged keys",
    "fwd_appendkv": "append",
    "fwd_batch_prefill": "batch prefill",
    "fwd_v3": "forward, third version",
}


def _name(kind: str) -> str:
    """The name of a kind in the report; one that is not listed, a kernel of our own, is its own."""
    return _KINDS.get(kind) or kind.replace("_", " ")


# Heading, what it means, whether it is a number.
COLUMNS = (
    (
        "Result",
        "pass: right numbers, no defect; known: exactly the defects of docs/races.md that it names",
        False,
    ),
    ("Arch", "what the code object is compiled for", False),
    ("Kernel", "what it computes", False),
    ("Provider", "who brings it: ck, asm or own", False),
    ("Type", "storage format", False),
    ("d", "head size", True),
    ("Mode", "batch, or group: sequences of any lengths", False),
    ("Mask", "whether it masks", False),
    ("With", "what it does beyond that", False),
    (
        "Error",
        "root mean square, worst case and output; 1: every rounding at its worst",
        True,
    ),
    ("Largest", "error of any element of any case, in the same units", True),
    ("Runs", "cases and schedules", True),
    ("Instructions", "wave instructions of the statistics' case", True),
    ("MFMA %", "of them matrix instructions", True),
    ("LDS read %", "bank efficiency, estimated: least passes, of the passes taken", True),
    ("LDS write %", "the same of writes", True),
    ("Load %", "bytes asked for, of the 128-byte lines that they lie in", True),
    ("Store %", "the same of stores", True),
    ("VGPRs", "vector registers, accumulators included", True),
    ("LDS", "bytes per workgroup", True),
    ("Scratch", "bytes per lane", True),
    ("Findings", "races and other defects; unfold a line for the instructions", True),
)


# Kind -> trait -> JSON of a value -> the number of kernels.
DrawnFrom = Mapping[str, Mapping[str, Mapping[str, int]]]


def document(
    results: Sequence[dict[str, Any]],
    metadata: Sequence[dict[str, Any]],
    drawn_from: DrawnFrom | None = None,
) -> dict[str, Any]:
    """Results with their code objects' metadata, by arch and name.

    drawn_from  the kernels of which these are a part, for one arch

    Raises ValueError unless both are of the same code objects.
    """
    of_object = {(m["instance"], m["arch"]): m for m in metadata}
    found = {(r["instance"], r["arch"]) for r in results}
    if found != of_object.keys():
        name, arch = sorted(found ^ of_object.keys())[0]
        raise ValueError(f"{name}.{arch} has a result or metadata, but not both")
    left_out = ("arch", "instance", "data_symbol")
    rows = []
    for result in sorted(results, key=lambda r: (r["arch"], r["kind"] != "fwd", r["instance"])):
        about = of_object[result["instance"], result["arch"]]
        code_object = {key: value for key, value in about.items() if key not in left_out}
        known = known_findings.known_of(result)
        kind = result["kind"]
        runs = [
            {**run, "excused": [n for n in run.get("errors", {}) if excused(kind, n, run, known)]}
            for run in result["runs"]
        ]
        verdict = judge(result)
        rows.append({
            **result,
            "provider": TABLE.provider_of[kind],
            "runs": runs,
            "verdict": str(verdict),
            "failures": verdict.failures,
            "known_defects": verdict.defects,
            "worst_rms": _number(verdict.worst_rms),
            "worst": _number(verdict.worst),
            "code_object": code_object,
        })  # fmt: skip
    return {
        "format": FORMAT,
        "patches": known_findings.patches(),
        "code_objects": len(rows),
        "failed": sum(r["verdict"] == "FAIL" for r in rows),
        "with_known_defects": sum(r["verdict"].startswith("known") for r in rows),
        "passed": sum(r["verdict"] == "pass" for r in rows),
        "known_defects": {
            letter: sum(letter in r["known_defects"] for r in rows)
            for letter in sorted({d for r in rows for d in r["known_defects"]})
        },
        "wave_instructions": sum(
            run.get("wave_instructions", 0) for row in rows for run in row["runs"]
        ),
        "figures": _figures(rows),
        "coverage": _coverage(rows, drawn_from or {}),
        "results": rows,
    }


def _coverage(rows: Sequence[dict[str, Any]], drawn_from: DrawnFrom) -> list[dict[str, Any]]:
    """Of each value of each trait: how many kernels have it, and how many were executed."""
    out = []
    for arch, (kind, traits) in itertools.product(
        sorted({row["arch"] for row in rows}), drawn_from.items()
    ):
        executed = [row for row in rows if (row["arch"], row["kind"]) == (arch, kind)]
        for trait, values in traits.items():
            for value, number in values.items():
                having = [row for row in executed if json.dumps(row["traits"][trait]) == value]
                out.append({
                    "arch": arch,
                    "kind": kind,
                    "trait": trait,
                    "value": json.loads(value),
                    "kernels": number,
                    "executed": len(having),
                    "failed": sum(row["verdict"] == "FAIL" for row in having),
                })  # fmt: skip
    return out


def _figures(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each kind of kernel, and of those of it that have a feature."""
    out = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        of_kind = [row for row in rows if row["kind"] == kind]
        for feature in ("", *sorted({f for row in of_kind for f in row["features"]})):
            chosen = [row for row in of_kind if not feature or feature in row["features"]]
            out.append({
                "kind": kind,
                "feature": feature,
                "code_objects": len(chosen),
                "failed": sum(row["verdict"] == "FAIL" for row in chosen),
                "runs": sum(len(row["runs"]) for row in chosen),
                "worst_rms": _number(max(float(row["worst_rms"]) for row in chosen)),
                "worst": _number(max(float(row["worst"]) for row in chosen)),
            })  # fmt: skip
    return out


def _number(value: float) -> float | str:
    """JSON has no infinity."""
    return value if math.isfinite(value) else "inf"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f}"


def _cells(row: dict[str, Any]) -> list[str]:
    profile, kernel = row["profile"], row["code_object"]["kernel"]
    lds, memory = profile.get("lds_efficiency", {}), profile.get("global_efficiency", {})
    return [
        row["verdict"],
        row["arch"],
        _name(row["kind"]),
        row["provider"],
        row["dtype"],
        str(row["head_size"] or ""),
        row["mode"] if row["kind"] in _KINDS else "",
        "mask" if row["mask"] else "",
        ", ".join(row["features"]),
        f"{float(row['worst_rms']):.2f}",
        f"{float(row['worst']):.2f}",
        str(len(row["runs"])),
        str(profile.get("wave_instructions", "")),
        _percent(profile.get("mfma_share")),
        _percent(lds.get("read")),
        _percent(lds.get("write")),
        _percent(memory.get("load")),
        _percent(memory.get("store")),
        str(kernel["vgpr_count"]),
        str(kernel["lds_size"]),
        str(kernel["scratch_size"]),
        str(len(row["findings"]) or ""),
    ]


def _list(title: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    listed = "".join(f"<li><pre>{escape(item)}</pre></li>" for item in items)
    return f"<h3>{title}</h3><ul>{listed}</ul>"


def _details(row: dict[str, Any]) -> str:
    runs = []
    for run in row["runs"]:
        errors = "; ".join(
            f"{name} {error['rms']} ({error['largest']})"
            + (" excused" if name in run["excused"] else "")
            for name, error in run.get("errors", {}).items()
        )
        shown = escape(errors or f"stopped by {run['stopped']}")
        runs.append(
            f"<tr><td>{escape(run['case'])}</td><td>{escape(run['schedule'])}</td>"
            f"<td class=n>{run.get('wave_instructions', '')}</td><td>{shown}</td></tr>"
        )
    findings = []
    for f in row["findings"]:
        where = f" (in {len(f['runs'])} of {len(row['runs'])} runs)" if f["runs"] else ""
        findings.append(f"{f['signature']}{where}\n{f['message']}")
    profile = row["profile"]
    classes = ", ".join(f"{name} {count}" for name, count in profile.get("classes", {}).items())
    opcodes = ", ".join(
        f"{name} {_percent(value)}%" for name, value in profile.get("opcode_efficiency", {}).items()
    )
    statistics = f"of “{profile['case']}”: {classes}\nefficiency: {opcodes or 'no access'}"
    return (
        f"<p class=name>{escape(row['instance'])}<br>key {row['code_object']['key']}</p>"
        + _list("Failures", row["failures"])
        + _list("Findings", findings)
        + _list("Statistics", [statistics])
        + "<h3>Runs</h3><table><thead><tr><th>Case</th><th>Schedule</th><th>Instructions</th>"
        "<th>Error: root mean square (largest)</th></tr></thead>"
        f"<tbody>{''.join(runs)}</tbody></table>"
    )


def _title(defect: str) -> str:
    findings = known_findings.document()["findings"]
    return next(f["title"] for f in findings if f["defect"] == defect)


def page(report: dict[str, Any], template: str) -> str:
    heads = []
    for name, meaning, number in COLUMNS:
        kind = " class=n" if number else ""
        button = f"<button>{escape(name)}</button>"
        heads.append(f'<th{kind} title="{escape(meaning)}">{button}</th>')
    body = []
    for row in report["results"]:
        cells = "".join(
            f"<td{' class=n' if number else ''}>{escape(cell)}</td>"
            for cell, (_, _, number) in zip(_cells(row), COLUMNS, strict=True)
        )
        details = f"<td colspan={len(COLUMNS)}>{_details(row)}</td>"
        body.append(
            f"<tbody class={row['verdict'].partition(':')[0].lower()} "
            f'data-text="{escape(row["instance"])}"><tr class=row tabindex=0>{cells}</tr>'
            f"<tr class=details hidden>{details}</tr></tbody>"
        )
    signatures: dict[str, int] = {}
    for row in report["results"]:
        for finding in row["findings"]:
            signatures[finding["signature"]] = signatures.get(finding["signature"], 0) + 1
    found = "".join(
        f"<tr><td class=n>{count}</td><td>{escape(signature)}</td></tr>"
        for signature, count in sorted(signatures.items(), key=lambda pair: -pair[1])
    )
    counts = (("failed", "fail"), ("with_known_defects", "with known defects"), ("passed", "pass"))
    verdict = ", ".join(f"{report[key]} {text}" for key, text in counts if report[key])
    defects = "".join(
        f"<tr><td class=n>{count}</td><td>{letter}</td><td>{escape(_title(letter))}</td></tr>"
        for letter, count in report["known_defects"].items()
    )
    figures = "".join(
        f"<tr><td>{escape(_name(f['kind']))}</td><td>{escape(f['feature'] or 'all')}</td>"
        + "".join(
            f"<td class=n>{value}</td>"
            for value in (
                f["code_objects"],
                f["failed"],
                f["runs"],
                f"{float(f['worst_rms']):.2f}",
                f"{float(f['worst']):.2f}",
            )
        )
        + "</tr>"
        for f in report["figures"]
    )
    coverage = "".join(
        f"<tr><td>{c['arch']}</td><td>{escape(_name(c['kind']))}</td><td>{escape(c['trait'])}</td>"
        f"<td>{escape(spell(c['value']))}</td><td class=n>{c['kernels']}</td>"
        f"<td class=n>{c['executed']}</td><td class=n>{c['failed']}</td></tr>"
        for c in report["coverage"]
    )
    legend = "".join(f"<dt>{escape(n)}</dt><dd>{escape(m)}</dd>" for n, m, _ in COLUMNS)
    return (
        template.replace("{{STYLE}}", pages.style())
        .replace("{{COUNT}}", str(report["code_objects"]))
        .replace("{{VERDICT}}", verdict)
        .replace("{{INSTRUCTIONS}}", f"{report['wave_instructions'] / 1e6:.1f} million")
        .replace("{{PATCHES}}", report["patches"])
        .replace("{{DEFECTS}}", defects or "<tr><td>none</td></tr>")
        .replace("{{HEADS}}", "".join(heads))
        .replace("{{ROWS}}", "\n".join(body))
        .replace("{{FIGURES}}", figures)
        .replace("{{COVERAGE}}", coverage or "<tr><td>all of them were executed</td></tr>")
        .replace("{{SIGNATURES}}", found)
        .replace("{{LEGEND}}", legend)
    )


def main(_arguments: Sequence[str]) -> None:
    def read(paths: Sequence[str]) -> list[dict[str, Any]]:
        return [json.loads(Path(path).read_text("utf-8")) for path in paths]

    drawn_from = None
    if _DRAWN_FROM.value:
        drawn_from = json.loads(Path(_DRAWN_FROM.value).read_text("utf-8"))
    report = document(read(_RESULTS.value), read(_METADATA.value), drawn_from)
    template = Path(__file__).with_name("report.html").read_text("utf-8")
    Path(_DOCUMENT.value).write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    Path(_PAGE.value).write_text(page(report, template), "utf-8")


if __name__ == "__main__":
    app.run(main)
