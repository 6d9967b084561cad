# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Launch tables that Python writes, as C++ reads them."""

import itertools
import json
import os
import struct
import subprocess
from pathlib import Path

import pytest

from kernels.code_object.spec import Recipe
from kernels.launch_table import table
from kernels.launch_table.specified import specified
from kernels.launch_table.traits import TABLE, parse

# Arch -> its wave: the second has another, as no arch of today.
ARCHS = {"gfx942": 64, "gfx950": 32}
TOML = Path(table.__file__).with_name("traits.toml").read_text()


def make_row(name: str, kind: str, number: int, **traits: object) -> dict:
    return {
        "name": name,
        "kind": kind,
        "traits": traits,
        "tile": {"seqlen_q": 128, "seqlen_k": number, "head_size_qk": 2, "head_size_v": 3},
        "head_size_alignment": 8,
        "block": {"waves": 4},
        "launch": f"launch_{kind}",
    }


def some_rows() -> list[dict]:
    """Every value of every trait of every kind, one trait at a time and in some products."""
    rows = []
    for kind in TABLE.kinds:
        traits = TABLE.of_kind(kind)
        values = {
            name: [32, 256] if trait.is_size else list(trait.values)
            for name, trait in traits.items()
        }
        first = {name: options[0] for name, options in values.items()}
        chosen = [first]
        chosen += [{**first, name: v} for name, options in values.items() for v in options[1:]]
        flags = [name for name in traits if TABLE.traits[name].is_flag][:4]
        chosen += [
            first | dict(zip(flags, pick, strict=True))
            for pick in itertools.product(*(values[name] for name in flags))
        ]
        for number, traits_of_row in enumerate(chosen):
            rows.append(make_row(f"{kind}_{number}", kind, number, **traits_of_row))
    return rows


def some_objects(rows: list[dict]) -> dict:
    objects = {}
    for row, arch in itertools.product(rows, ARCHS):
        recipe = Recipe((f"-D{len(row['name']) % 3}",), "h" * 64, "clang")
        # Some are alone.
        group = [row["name"].encode(), arch.encode()] if len(row["name"]) % 2 else []
        spec = recipe.spec(row["name"].encode(), arch, group=group)
        digest = spec.key()
        record = {"key": digest, "sha256": digest[::-1], "size": len(row["name"]), "spec": spec}
        objects[row["name"], arch] = record | {"kernel": {"kernarg_size": 100}}
    return objects


def probe(blob: bytes, folder: Path) -> dict:
    path = folder / "blob"
    path.write_bytes(blob)
    return json.loads(subprocess.run([os.environ["PROBE"], path], check=True, stdout=-1).stdout)


def test_cxx_reads_what_python_wrote(tmp_path: Path):
    rows = some_rows()
    objects = some_objects(rows)
    absent = objects.pop((rows[1]["name"], "gfx950"))
    assert absent
    # Two of results, on two kinds of problems, and one of nothing that results show.
    defects = {"P": "two_tiles", "U": "no_keys", "V": ""}
    objects[rows[2]["name"], "gfx942"]["defects"] = defects
    hazards = sum(1 << list(TABLE.hazards).index(name) for name in ("two_tiles", "no_keys"))
    built = table.launch_table(rows, objects, ARCHS, "some")
    assert built.launches == [f"launch_{kind}" for kind in TABLE.kinds]
    seen = probe(built.blob, tmp_path)
    assert (seen["variant_set"], seen["no_arch"], seen["no_rows"]) == ("some", -1, 0)
    keys = [TABLE.exact_key(row["kind"], row["traits"]) for row in rows]
    for row, read in zip(rows, seen["rows"], strict=True):
        key = TABLE.exact_key(row["kind"], row["traits"])
        assert read["traits"] == [
            TABLE.number(trait, row["traits"][name]) if name in row["traits"] else 0
            for name, trait in TABLE.traits.items()
        ]
        assert read["name"] == row["name"]
        assert read["kind"] == row["kind"]
        assert read["launch"] == built.launches.index(row["launch"])
        assert read["tile"] == list(row["tile"].values())
        assert read["alignment"] == 8
        assert read["kernarg_size"] == 100
        assert read["exact_key"] == key
        assert read["found"] == [number for number, other in enumerate(keys) if other == key]
        assert read["buckets"] == sizes_of(rows, row)
        assert read["objects"] == {
            arch: [
                *(o["key"], o["sha256"], o["size"], [4 * ARCHS[arch], 1, 1], arch),
                *(o["spec"].source, json.loads(o["spec"].recipe().serialised())),
                *(hazards if "defects" in o else 0, o["spec"].group),
            ]
            for (name, arch), o in objects.items()
            if name == row["name"]
        }


def sizes_of(rows: list[dict], row: dict) -> list[list[int]]:
    """Head sizes of a row's kind and dtype, in order."""
    same = [
        other["traits"]
        for other in rows
        if (other["kind"], other["traits"].get("dtype"))
        == (row["kind"], row["traits"].get("dtype"))
    ]
    pairs = [(t.get("head_size_qk", 0), t.get("head_size_v", 0)) for t in same]
    return [list(pair) for pair in dict.fromkeys(pairs)]


def test_the_mask_of_a_kind_has_the_bits_of_its_own_traits():
    for kind in TABLE.kinds:
        mask = TABLE.exact_key_mask(kind)
        for trait in TABLE.traits.values():
            value = 65535 if trait.is_size else trait.values[-1]
            bits = TABLE.exact_key(kind, {trait.name: value}) & ~TABLE.exact_key(kind, {})
            assert bits & mask == (bits if kind in trait.kinds else 0)


def test_what_is_matched_exactly_is_in_the_exact_key():
    for kind in TABLE.kinds:
        for name, trait in TABLE.of_kind(kind).items():
            values = [1, 2] if trait.is_size else trait.values
            keys = {TABLE.exact_key(kind, {name: value}) for value in values}
            is_exact = trait.match in ("exact", "at_least")
            assert len(keys) == (len(values) if is_exact else 1), name


def test_a_table_without_bytes(tmp_path: Path):
    rows = some_rows()[:1]
    keys = {(rows[0]["name"], "gfx942"): {"key": "ab" * 32}}
    seen = probe(table.launch_table(rows, keys, {"gfx942": 64}, "keys").blob, tmp_path)
    assert seen["rows"][0]["objects"] == {
        "gfx942": ["ab" * 32, "00" * 32, 0, [256, 1, 1], "gfx942", "00" * 32, None, 0, ""]
    }
    assert seen["rows"][0]["kernarg_size"] == 0


def test_a_workgroup_of_work_items_is_the_same_on_every_wave(tmp_path: Path):
    row = some_rows()[0] | {"block": {"work_items": 64}}
    (read,) = probe(table.launch_table([row], some_objects([row]), ARCHS, "a").blob, tmp_path)[
        "rows"
    ]
    assert [read["objects"][arch][3] for arch in ARCHS] == [[64, 1, 1]] * 2


def test_no_rows(tmp_path: Path):
    assert probe(table.launch_table([], {}, ARCHS, "none").blob, tmp_path)["rows"] == []


def test_damaged_tables_are_refused(tmp_path: Path):
    rows = some_rows()[:7]
    blob = table.launch_table(rows, some_objects(rows), ARCHS, "some").blob
    assert probe(blob, tmp_path)["valid"]
    damaged = [blob[:size] for size in (0, 7, 79, len(blob) - 8)] + [blob + bytes(8)]
    for field in range(8, 80 - 4, 4):  # every count and offset; the last word is reserved
        for value in (0xFFFFFFFF, len(blob) + 8):
            damaged.append(blob[:field] + struct.pack("<I", value) + blob[field + 4 :])
    damaged.append(b"X" + blob[1:])
    for text in damaged:
        assert probe(text, tmp_path) == {"valid": False}


def test_recipes_and_groups_that_do_not_exist_are_refused(tmp_path: Path):
    rows = some_rows()[:1]
    blob = table.launch_table(rows, some_objects(rows), ARCHS, "some").blob
    objects = struct.unpack_from("<I", blob, 8 + 4 * (7 + 2))[0]
    recipe = objects + 32 + 32 + 8 + 8 + 32
    assert struct.unpack_from("<I", blob, recipe) == (1,)
    for field, value in ((recipe, 2), (recipe + 4, len(blob))):
        damaged = blob[:field] + struct.pack("<I", value) + blob[field + 4 :]
        assert probe(damaged, tmp_path) == {"valid": False}


def test_hazards_that_do_not_exist_are_refused(tmp_path: Path):
    rows = some_rows()[:1]
    blob = table.launch_table(rows, some_objects(rows), ARCHS, "some").blob
    hazards = struct.unpack_from("<I", blob, 8 + 4 * (7 + 2))[0] + 32 + 32 + 8 + 6
    assert struct.unpack_from("<H", blob, hazards) == (0,)
    for bits, valid in ((1, True), (1 << len(TABLE.hazards), False)):
        changed = blob[:hazards] + struct.pack("<H", bits) + blob[hazards + 2 :]
        assert probe(changed, tmp_path)["valid"] == valid
    objects = some_objects(rows)
    objects[rows[0]["name"], "gfx942"]["defects"] = {"Z": "moonlight"}
    with pytest.raises(ValueError, match="unknown hazards: moonlight; known: always, two_tiles, "):
        table.launch_table(rows, objects, ARCHS, "some")


def test_a_key_that_is_not_its_specs():
    rows = some_rows()[:1]
    objects = some_objects(rows)
    objects[rows[0]["name"], "gfx950"]["key"] = "ab" * 32
    with pytest.raises(table.TableError, match="for gfx950: its key is not that of its spec"):
        table.launch_table(rows, objects, ARCHS, "some")


def test_architectures_that_disagree():
    rows = some_rows()[:1]
    objects = some_objects(rows)
    objects[rows[0]["name"], "gfx950"]["kernel"] = {"kernarg_size": 108}
    with pytest.raises(table.TableError, match="take other arguments"):
        table.launch_table(rows, objects, ARCHS, "some")


def test_the_mirror_has_the_structs_layout():
    mirror = json.loads(Path(os.environ["MIRROR"]).read_text())
    assert mirror["kinds"] == list(TABLE.kinds)
    at = 1
    for trait in mirror["traits"]:
        assert at == TABLE.offsets()[trait["name"]]
        at += trait["size"]
    assert at + at % 2 == struct.calcsize(TABLE.packed_format())


def test_a_new_trait_is_one_entry():
    entry = """
[[traits]]
name = "sink"
type = "flag"
match = "exact"
text = { false = "no sink", true = "a sink" }
doc = "tokens that every query sees"
[traits.kinds]
fwd = "F_pipeline.F_sink"
"""
    grown = parse(TOML + entry)
    assert grown.exact_key("fwd", {"sink": True}) != grown.exact_key("fwd", {"sink": False})
    assert grown.pack("fwd", {"sink": True}) != grown.pack("fwd", {"sink": False})
    assert "sink" in grown.of_direction("fwd") and "sink" not in grown.of_direction("bwd")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('type = "Bias"', 'type = "Byas"', "bias: unknown type 'Byas'"),
        ('match = "padding"', 'match = "pad"', "unknown match 'pad'"),
        ('fwd = "F_mode"', 'fwt = "F_mode"', r"mode: unknown kinds \['fwt'\]"),
        ('kinds = ["fwd"]', 'kinds = ["forward"]', r"fwd: unknown kinds \['forward'\]"),
        ("alibi = 2", "alibi = 16", "more than 4 bits"),
        ("mi300 = [304]", "mi30 = [304]", r"schedules.gfx942: unknown schedules \['mi30'\]"),
        (
            'mask_shape = ["none"]',
            'mask_shape = ["non"]',
            r"backward_choices.gfx950: unknown masks \['non'\]",
        ),
    ],
)
def test_a_table_of_traits_that_contradicts_itself(old: str, new: str, message: str):
    with pytest.raises(ValueError, match=message):
        parse(TOML.replace(old, new, 1))


def test_values_that_do_not_fit():
    with pytest.raises(ValueError, match="head_size_qk = 65536: not a 16-bit number"):
        TABLE.exact_key("fwd", {"head_size_qk": 65536})


def test_a_code_object_for_each_row_and_architecture_but_what_is_left_out():
    rows = [make_row("a", "fwd", 1), make_row("b", "fwd", 2)]
    objects = some_objects(rows)
    table.check_complete(rows, objects, list(ARCHS))
    rows[1]["left_out"] = {"gfx950": "no room for it"}
    with pytest.raises(table.TableError, match="a code object that no row names: b for gfx950"):
        table.check_complete(rows, objects, list(ARCHS))
    del objects["b", "gfx950"]
    table.check_complete(rows, objects, list(ARCHS))
    del objects["b", "gfx942"]
    with pytest.raises(table.TableError, match="no code object of b for gfx942"):
        table.check_complete(rows, objects, list(ARCHS))


def test_further_kernels_are_behind_those_of_the_set_and_change_none(tmp_path: Path) -> None:
    of_kind = {
        kind: [row for row in some_rows() if row["kind"] == kind]
        for kind in ("fwd", "bwd_dot_do_o")
    }
    (a, b, c), (d, e) = of_kind["fwd"][:3], of_kind["bwd_dot_do_o"][:2]
    rows, others = [b, d], [a, b, c, e]
    objects = some_objects(rows)
    records = {
        place: {"key": record["key"], "spec": record["spec"]}
        for place, record in some_objects(others).items()
    }
    table.check_specified(others, records, objects)
    merged = table.beside(rows, others)
    assert merged == [b, a, c, d, e]
    assert table.beside(rows, []) == rows
    found = probe(table.launch_table(merged, {**records, **objects}, ARCHS, "some").blob, tmp_path)
    alone = probe(table.launch_table(rows, objects, ARCHS, "some").blob, tmp_path)
    by_name = {row["name"]: row for row in found["rows"]}
    for row in alone["rows"]:
        assert by_name[row["name"]]["objects"] == row["objects"]
    for arch in ARCHS:
        key, sha256, size, *_ = by_name[a["name"]]["objects"][arch]
        assert (key, sha256, size) == (records[a["name"], arch]["key"], "0" * 64, 0)
    without = {place: record for place, record in records.items() if place[0] != e["name"]}
    with pytest.raises(table.TableError, match=f"no spec of {e['name']}"):
        table.check_specified(others, without, objects)
    with pytest.raises(table.TableError, match=f"a spec that no row names: {e['name']}"):
        table.check_specified([a, b, c], records, objects)


def test_a_kernel_that_is_not_compiled_has_the_digest_of_its_lock(tmp_path: Path) -> None:
    recipe = Recipe(("-O3",), "a" * 64, "b" * 64)
    (tmp_path / "recipe").write_bytes(recipe.serialised())
    (tmp_path / "a.cpp").write_bytes(b"source")
    key = recipe.spec(b"source", "gfx942", ["-g"]).key()
    kernel = {
        "arch": "gfx942",
        "flags": ["-g"],
        "recipe": str(tmp_path / "recipe"),
        "source": str(tmp_path / "a.cpp"),
    }
    proofs = {"proven": [key, "c" * 64], "older": ["d" * 64, "c" * 64], "unknown": []}
    records = specified({**kernel, "instance": name, "proven": p} for name, p in proofs.items())
    rows = [some_rows()[0] | {"name": name} for name in proofs]
    table.check_specified(rows, records, {})
    found = probe(table.launch_table(rows, records, {"gfx942": 64}, "a").blob, tmp_path)
    assert [row["objects"]["gfx942"][:3] for row in found["rows"]] == [
        [key, sha256, 0] for sha256 in ("c" * 64, "0" * 64, "0" * 64)
    ]
    assert [row["kernarg_size"] for row in found["rows"]] == [0, 0, 0]


def test_a_table_has_the_rows_of_its_archs_targets() -> None:
    rows = [
        {**make_row("a", "fwd", 1), "targets": ["gfx9"]},
        {**make_row("b", "fwd", 2), "targets": ["gfx12"]},
        {**make_row("c", "fwd", 3), "targets": ["gfx9", "gfx12"]},
        make_row("ours", "fwd", 4),
    ]
    for archs, names in {
        ("gfx942",): ["a", "c", "ours"],
        ("gfx1201",): ["b", "c", "ours"],
        ("gfx1200", "gfx950"): ["a", "b", "c", "ours"],
    }.items():
        taken = table.of_archs(rows, archs)
        assert [row["name"] for row in taken] == names
        assert all("targets" not in row for row in taken)
