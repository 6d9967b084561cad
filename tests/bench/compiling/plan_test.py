# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which actions make which code objects together, from an action graph as Bazel prints it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bench.compiling import plan
from tests.e2e import action_graph


def graph(*actions: dict[str, Any]) -> list[action_graph.Action]:
    """The parsed graph of actions that are written {mnemonic, in, out, content or arguments}."""
    paths = sorted({path for a in actions for path in (*a["in"], *a["out"])})
    number = {path: i for i, path in enumerate(paths)}
    return action_graph.parse(
        {
            "pathFragments": [{"id": i, "label": path} for path, i in number.items()],
            "artifacts": [{"id": i, "pathFragmentId": i} for i in number.values()],
            "depSetOfFiles": [
                {"id": i, "directArtifactIds": [number[path] for path in a["in"]]}
                for i, a in enumerate(actions)
            ],
            "actions": [
                {
                    "mnemonic": a["mnemonic"],
                    "inputDepSetIds": [i],
                    "outputIds": [number[path] for path in a["out"]],
                    **({"fileContents": a["content"]} if "content" in a else {}),
                    "arguments": a.get("arguments", []),
                }
                for i, a in enumerate(actions)
            ],
        }
    )


def write(path: str) -> dict[str, Any]:
    return {"mnemonic": "FileWrite", "in": [], "out": [path], "content": "text"}


def run(inputs: list[str], outputs: list[str]) -> dict[str, Any]:
    return {"mnemonic": "Run", "in": inputs, "out": outputs, "arguments": ["run"]}


OUT = "bazel-out/k8-opt/bin"
# b and c of one compile; a by itself; all of them with one written file.
THREE = (
    run([f"{OUT}/bc.ir", f"{OUT}/written"], [f"{OUT}/c.gfx942.hsaco"]),
    run([f"{OUT}/bc.ir"], [f"{OUT}/b.gfx942.hsaco"]),
    run([f"{OUT}/bc.cpp", "include/x.h"], [f"{OUT}/bc.ir"]),
    run(["a.cpp", f"{OUT}/written"], [f"{OUT}/a.gfx942.hsaco"]),
    run([f"{OUT}/a.gfx942.hsaco"], [f"{OUT}/a.json"]),
    write(f"{OUT}/bc.cpp"),
    write(f"{OUT}/written"),
)


def names(group: plan.Group) -> list[str]:
    return [plan.stem(path) for path in group.outputs]


def test_objects_with_a_compile_in_common_are_a_group_and_a_written_file_makes_none():
    lone, pair = plan.groups(graph(*THREE))
    assert names(lone) == ["a.gfx942"]
    assert names(pair) == ["b.gfx942", "c.gfx942"]
    assert (lone.name, pair.name) == ("a.gfx942", "b.gfx942 and 1 more")


def test_a_group_has_the_actions_behind_its_objects_each_once_and_in_order():
    lone, pair = plan.groups(graph(*THREE))
    assert [a.outputs[0] for a in lone.actions] == [f"{OUT}/written", f"{OUT}/a.gfx942.hsaco"]
    made = [a.outputs[0] for a in pair.actions]
    assert sorted(made) == sorted(
        f"{OUT}/{name}"
        for name in ("bc.cpp", "bc.ir", "written", "b.gfx942.hsaco", "c.gfx942.hsaco")
    )
    assert made.index(f"{OUT}/bc.cpp") < made.index(f"{OUT}/bc.ir")
    assert made.index(f"{OUT}/bc.ir") < made.index(f"{OUT}/b.gfx942.hsaco")


def test_groups_that_an_object_joins_become_one():
    a, b, both = f"{OUT}/a.ir", f"{OUT}/b.ir", [f"{OUT}/a.ir", f"{OUT}/b.ir"]
    actions = graph(
        run(["a.cpp"], [a]),
        run(["b.cpp"], [b]),
        run([a], [f"{OUT}/1.hsaco"]),
        run([b], [f"{OUT}/2.hsaco"]),
        run(both, [f"{OUT}/3.hsaco"]),
    )
    (group,) = plan.groups(actions)
    assert names(group) == ["1", "2", "3"]


def test_a_group_whose_actions_make_more_than_is_asked_for_is_not_whole():
    part = run(["x.cpp"], [f"{OUT}/x/1.bc", f"{OUT}/x/2.bc"])
    actions = graph(*THREE, part, run([f"{OUT}/x/1.bc"], [f"{OUT}/1.hsaco"]))
    whole, partly = plan.whole(plan.groups(actions))
    assert [names(g) for g in whole] == [["a.gfx942"], ["b.gfx942", "c.gfx942"]]
    assert [(names(g), g.unused) for g in partly] == [(["1"], [f"{OUT}/x/2.bc"])]


def test_what_bazel_makes_of_a_programs_files_is_no_action_to_run():
    tree = {"mnemonic": "Middleman", "in": [f"{OUT}/tool"], "out": [f"{OUT}/tool.runfiles"]}
    inputs = [f"{OUT}/tool", f"{OUT}/tool.runfiles", "bazel-out/k8-opt/_middlemen/tool"]
    made = run(inputs, [f"{OUT}/a.hsaco"])
    (group,) = plan.groups(graph(tree, made, write(f"{OUT}/tool")))
    assert [a.outputs[0] for a in group.actions] == [f"{OUT}/tool", f"{OUT}/a.hsaco"]


def test_an_action_without_a_command_line_is_named():
    link = {"mnemonic": "Symlink", "in": ["a"], "out": [f"{OUT}/a.hsaco"]}
    with pytest.raises(ValueError, match=r"a\.hsaco: the action Symlink has no command line"):
        plan.groups(graph(link))


def test_an_input_that_nothing_makes_is_named():
    with pytest.raises(ValueError, match=f"{OUT}/a.hsaco: no action makes its input {OUT}/lost"):
        plan.groups(graph(run([f"{OUT}/lost"], [f"{OUT}/a.hsaco"])))


def test_an_empty_file_is_written_though_the_graph_has_no_text_of_it():
    empty = {"mnemonic": "FileWrite", "in": [], "out": [f"{OUT}/empty.h"]}
    (group,) = plan.groups(graph(empty, run([f"{OUT}/empty.h"], [f"{OUT}/a.hsaco"])))
    assert next((a.outputs[0], a.content) for a in group.actions) == (f"{OUT}/empty.h", "")


def test_a_graph_without_code_objects_is_refused():
    with pytest.raises(ValueError, match="make no code object"):
        plan.groups(graph(run(["a.c"], [f"{OUT}/a.o"])))


def test_only_takes_the_whole_group_of_what_it_finds():
    groups = plan.groups(graph(*THREE))
    assert [names(g) for g in plan.chosen(groups, r"^c\.", False)] == [["b.gfx942", "c.gfx942"]]
    assert plan.chosen(groups, "", False) == groups


def test_only_that_finds_nothing_lists_what_there_is():
    with pytest.raises(ValueError, match=r"--only=d128 finds none of:\n  a.gfx942\n  b.gfx942"):
        plan.chosen(plan.groups(graph(*THREE)), "d128", False)


def test_only_that_is_no_pattern_says_where():
    with pytest.raises(ValueError, match=r"--only=\(d128 is no regular expression: missing \)"):
        plan.chosen(plan.groups(graph(*THREE)), "(d128", False)


def test_quick_is_one_group_of_each_of_the_two_least_sizes():
    def members(count: int, start: int) -> plan.Group:
        outputs = tuple(f"{OUT}/{start + i}.hsaco" for i in range(count))
        return plan.Group(outputs, ())

    groups = [members(1, 0), members(1, 1), members(4, 2), members(4, 6), members(8, 10)]
    assert plan.chosen(groups, "", True) == [groups[0], groups[2]]
    assert plan.chosen(groups[:2], "", True) == [groups[0]]
