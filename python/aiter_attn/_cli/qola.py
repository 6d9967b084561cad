# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A manifest of QoLA's, read as the kernels of this wheel that its libraries have.

qola.json has its words; kernels/qola/words.py writes it. Every mistake is told with its line.
"""

from __future__ import annotations

import collections
import dataclasses
import difflib
import functools
import importlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["keys_of"]

_Trait = str | int | bool
_Admitted = dict[str, list[_Trait]]
# A table's name, which of those of that name it is, and one of its keys; "": the table itself.
_Where = tuple[str, int, str]

_HEADER = re.compile(r"\s*\[\[?\s*\"?([A-Za-z0-9_-]+)\"?\s*\]")
_KEY = re.compile(r"\s*\"?([A-Za-z0-9_-]+)\"?\s*=")


@functools.cache
def _words() -> Any:
    return json.loads(Path(__file__).with_name("qola.json").read_text(encoding="utf-8"))


@dataclasses.dataclass(frozen=True)
class _Library:
    """of_ck, of_asm: whether it has Composable Kernel's kernels, and AITER's."""

    receipt: str
    of_ck: bool
    of_asm: bool


@dataclasses.dataclass(frozen=True)
class _Selector:
    """Kernels of a direction: the values that are admitted, by trait, and the keys that say so;
    within: the receipt's filter, any of these."""

    where: _Where
    direction: str
    admitted: _Admitted
    keys: Mapping[str, str]
    within: Sequence[Mapping[str, Sequence[_Trait]]]

    def admits(self, instance: Mapping[str, Any]) -> bool:
        if instance["kind"] not in _words()["directions"][self.direction]["kinds"]:
            return False
        return _inside(self.admitted, instance["traits"]) and any(
            _inside(box, instance["traits"]) for box in self.within
        )


def _inside(admitted: Mapping[str, Sequence[_Trait]], traits: Mapping[str, _Trait]) -> bool:
    return all(traits[name] in values for name, values in admitted.items() if name in traits)


def _spell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _listing(values: Iterable[object]) -> str:
    return ", ".join(map(_spell, values))


def _is_same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other  # True == 1


def _parse(text: str, file: str) -> dict[str, Any]:
    """Raises ValueError."""
    try:
        toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    except ModuleNotFoundError:
        raise ValueError(
            f"{file}: TOML is read by Python 3.11 or newer, or with tomli: pip install tomli"
        ) from None
    try:
        document: dict[str, Any] = toml.loads(text)
    except RecursionError:
        raise ValueError(f"{file}:1: not TOML that can be read: nested too deep") from None
    except ValueError as error:
        line = re.search(r"at line (\d+)", str(error))
        number = line[1] if line else len(text.splitlines()) or 1
        raise ValueError(f"{file}:{number}: not TOML: {error}") from None
    return document


def _lines(text: str) -> dict[_Where, int]:
    """The lines of TOML's tables and keys."""
    found: dict[_Where, int] = {}
    count: collections.Counter[str] = collections.Counter()
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = header[1]
            found[table, count[table], ""] = number
            count[table] += 1
        elif key := _KEY.match(line):
            found.setdefault((table, max(count[table] - 1, 0), key[1]), number)
    return found


class _Reading:
    """One manifest, and what is wrong in it."""

    def __init__(self, file: str, text: str, groups: Sequence[str]) -> None:
        self.file = file
        self.groups = groups
        self.document = _parse(text, file)
        self.lines = _lines(text)
        self.wrong: list[tuple[int, str]] = []

    def refuse(self, where: _Where, message: str) -> None:
        name, number, _ = where
        line = self.lines.get(where) or self.lines.get((name, number, ""))
        # A table's name may be a key at the top.
        self.wrong.append((line or self.lines.get(("", 0, name), 1), message))

    def end(self) -> None:
        """Raises ValueError where anything is wrong."""
        if self.wrong:
            told = dict.fromkeys(sorted(self.wrong, key=lambda each: each[0]))
            raise ValueError("\n".join(f"{self.file}:{line}: {said}" for line, said in told))

    def known(self, word: str, allowed: Iterable[str], what: str, where: _Where) -> bool:
        """Whether a word is allowed; else it is refused."""
        allowed = sorted(allowed)
        if word in allowed:
            return True
        near = difflib.get_close_matches(word, allowed, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        self.refuse(where, f"unknown {what} {word!r}{hint} Allowed: {_listing(allowed)}")
        return False

    def strings(self, table: Mapping[str, Any], where: _Where) -> list[str]:
        """The list of a key; without it, and where it is refused, empty."""
        value = table.get(where[2], [])
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return value
        self.refuse(where, f"{where[2]} = {value!r}: it is a list of strings")
        return []

    def tables(self, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Those of [[name]], each with its number from 0."""
        given = self.document.get(name, [])
        if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
            self.refuse((name, 0, ""), f"{name} must be written as [[{name}]] tables")
            return
        yield from enumerate(given)

    def table(self, name: str) -> dict[str, Any]:
        """[name]."""
        given = self.document.get(name, {})
        if isinstance(given, dict):
            for key in given:
                self.known(key, _words()["manifest"][name], "key", (name, 0, key))
            return given
        self.refuse((name, 0, ""), f"{name} must be written as a table [{name}]")
        return {}

    def mode(self, table: Mapping[str, Any], where: _Where) -> None:
        if "mode" in table:
            self.known(str(table["mode"]), _words()["manifest"]["modes"], "mode", where)

    def libraries(self) -> dict[str, _Library]:
        """Those of the chosen groups, by their direction."""
        names = _words()["libraries"]
        found: dict[str, _Library] = {}
        known_groups: dict[str, None] = {}
        for number, module in self.tables("modules"):
            where = ("modules", number, "name")
            name, group = module.get("name"), module.get("group")
            if isinstance(group, str):
                known_groups[group] = None
            if self.groups and group not in self.groups:
                continue
            if name not in names:
                self.refuse(
                    where,
                    f"the module {name!r} has no kernels of attention here. Allowed: "
                    f"{_listing(names)}; --group chooses the modules of a group alone",
                )
            elif names[name] in found:
                self.refuse(where, f"{name} is there twice; keep one")
            else:
                found[names[name]] = self.library(module, number)
        for group in self.groups:
            if group not in known_groups:
                self.refuse(
                    ("modules", 0, ""),
                    f"no module is of the group {group!r}; its groups are "
                    f"{_listing(known_groups) or 'none'}",
                )
        return found

    def library(self, module: Mapping[str, Any], number: int) -> _Library:
        words = _words()["manifest"]

        def where(key: str) -> _Where:
            return ("modules", number, key)

        for key in module:
            self.known(key, words["modules"], "key", where(key))
        self.mode(module, where("mode"))
        dropped = self.strings(module, where("drop_directions"))
        subdirs = self.strings(module, where("hsa_subdirs"))
        for key, allowed, listed in (
            ("drop_directions", words["drop_directions"], dropped),
            ("hsa_subdirs", words["hsa_subdirs"][module["name"]], subdirs),
        ):
            for each in listed:
                self.known(each, allowed, f"value of {key}", where(key))
        without_ck = any(
            flag in str(module.get(key, ""))
            for key in words["compiling"]
            for flag in words["without_ck"]
        )
        return _Library(
            self.receipt(module, where("receipt")),
            _words()["libraries"][module["name"]] not in dropped and not without_ck,
            "hsa_subdirs" not in module or bool(subdirs),
        )

    def receipt(self, table: Mapping[str, Any], where: _Where) -> str:
        """Its number; the default where it is refused."""
        default: int = _words()["receipt"]
        value = table.get("receipt", default)
        if type(value) is int and str(value) in _words()["receipts"]:
            return str(value)
        self.refuse(
            where, f"receipt {value!r} is not known. Allowed: {_listing(_words()['receipts'])}"
        )
        return str(default)

    def selectors(self, libraries: Mapping[str, _Library]) -> list[_Selector]:
        """Of the tables of variants, and of libraries without any."""
        found = []
        for direction, words in _words()["directions"].items():
            name, library = words["table"], libraries.get(direction)
            if self.groups and library is None:
                continue
            given = list(self.tables(name))
            if library and not library.of_ck:
                for number, _ in given:
                    self.refuse(
                        (name, number, ""),
                        f"[[{name}]] chooses kernels of Composable Kernel, which its library "
                        "leaves out; remove one of both",
                    )
                continue
            if not given and library:
                within = _words()["receipts"][library.receipt][direction]
                found.append(_Selector((name, 0, ""), direction, {}, {}, within))
            for number, table in given:
                found.append(self.selector(direction, number, table, library))
        return found

    def selector(
        self, direction: str, number: int, table: dict[str, Any], library: _Library | None
    ) -> _Selector:
        words = _words()["directions"][direction]
        name: str = words["table"]
        default = {} if library is None else {"receipt": int(library.receipt)}
        receipt = self.receipt(default | table, (name, number, "receipt"))
        if library and receipt != library.receipt:
            self.refuse(
                (name, number, "receipt"),
                f"receipt is {receipt}, and that of the library is {library.receipt}; keep one",
            )
        admitted: _Admitted = {}
        keys: dict[str, str] = {}
        bias: dict[str, list[_Trait]] = {}
        for key, value in table.items():
            where = (name, number, key)
            trait = words["keys"].get(key, key)
            if key == "receipt":
                continue
            if key in _words()["bias"] or (key == _words()["sink"] and direction == "fwd"):
                values = self.values(value, [False, True], where)
                if key in _words()["bias"]:
                    bias[key] = values
                elif values and False not in values:
                    self.refuse(where, f"{key} = true selects nothing: no kernel has sink tokens")
                continue
            allowed = [*words["keys"], *words["values"], *_words()["bias"], "receipt"]
            if direction == "fwd":
                allowed.append(_words()["sink"])
            if trait in admitted:
                self.refuse(where, f"{keys[trait]} and {key} both set {trait}; keep one")
            elif self.known(key, allowed, "key", where):
                admitted[trait] = self.values(value, words["values"][trait], where)
                keys[trait] = key
        if bias and "bias" in admitted:
            where = (name, number, next(iter(bias)))
            self.refuse(where, f"bias and {where[2]} both set bias; keep one")
        elif bias:
            admitted["bias"] = _bias(bias)
            keys["bias"] = next(iter(bias))
        within = _words()["receipts"][receipt][direction]
        return _Selector((name, number, ""), direction, admitted, keys, within)

    def values(
        self, value: object, allowed: Sequence[_Trait] | None, where: _Where
    ) -> list[_Trait]:
        """Those that a key admits; empty where they are refused. allowed: None: sizes."""
        given = value if isinstance(value, list) else [value]
        if not given:
            self.refuse(where, f"{where[2]} is an empty list, which selects nothing; leave it out")
        for each in given:
            if allowed is None and type(each) is not int:
                self.refuse(where, f"{where[2]} = {_spell(each)}: it is a whole number")
                return []
            if allowed is not None and not any(_is_same(each, known) for known in allowed):
                self.refuse(
                    where,
                    f"unknown value {_spell(each)!r} for {where[2]}. Allowed: {_listing(allowed)}",
                )
                return []
        return given


def _bias(said: Mapping[str, list[_Trait]]) -> list[_Trait]:
    """The kinds of bias that has_bias and has_alibi admit together: the former comes first."""
    has_bias, has_alibi = (said.get(key, [False, True]) for key in _words()["bias"])
    pairs = [(bias, alibi) for bias in has_bias for alibi in has_alibi]
    return list(dict.fromkeys("elementwise" if b else "alibi" if a else "none" for b, a in pairs))


def _archs(reading: _Reading, known: Sequence[str]) -> list[str]:
    """Those of the manifest that this wheel has kernels for; others are told on stderr."""
    build = reading.table("build")
    where = ("build", 0, "architectures")
    reading.mode(build, ("build", 0, "mode"))
    asked = list(dict.fromkeys(reading.strings(build, where))) or list(known)
    found = [arch for arch in asked if arch in known]
    if not found:
        reading.refuse(
            where, f"{_listing(asked)}: this wheel has kernels for {_listing(known) or 'no arch'}"
        )
    elif left_out := [arch for arch in asked if arch not in known]:
        print(
            f"{reading.file}: kernels for {_listing(left_out)} are left out, which this wheel has "
            "none for",
            file=sys.stderr,
        )
    return found


def _select(
    reading: _Reading, selector: _Selector, manifest: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """The instances that a selector admits. One that admits none is refused, and so is a value."""
    found = [each for each in manifest["instances"] if selector.admits(each)]
    of = f"this wheel's set, {manifest['variant_set']}, has no kernel of {selector.direction}"
    wider = "take a wheel of a wider set, such as te"
    if not found:
        reading.refuse(selector.where, f"{of} with these traits; {wider}")
    for trait, values in selector.admitted.items() if found else ():
        has = {each["traits"][trait] for each in found if trait in each["traits"]}
        key = selector.keys[trait]
        for value in values:
            if value not in has:
                said = value if key == trait or key not in _words()["bias"] else f"{trait} {value}"
                reading.refuse(
                    (*selector.where[:2], key),
                    f"{key} = {_spell(said)}: {of} with it and the other keys, where there is "
                    f"{_listing(sorted(has, key=str))}; remove it, or {wider}",
                )
    yield from found


def keys_of(
    text: str, file: str, groups: Sequence[str], manifest: Mapping[str, Any], archs: Sequence[str]
) -> list[str]:
    """The keys of the kernels that a manifest asks for, each once.

    groups    of its modules; empty: all of them
    manifest  the wheel's
    archs     that the wheel has kernels for

    Raises ValueError that tells all that is wrong, each with its line.
    """
    reading = _Reading(file, text, groups)
    for name in reading.document:
        reading.known(name, _words()["manifest"]["tables"], "table", (name, 0, ""))
    reading.table("qola")
    chosen = _archs(reading, archs)
    libraries = reading.libraries()
    selectors = reading.selectors(libraries)
    if not (selectors or libraries or reading.wrong):
        reading.refuse(
            ("modules", 0, ""),
            f"asks for no kernel: add [[modules]] with name = {_listing(_words()['libraries'])}",
        )
    reading.end()
    instances = [each for selector in selectors for each in _select(reading, selector, manifest)]
    reading.end()
    asm = {
        kind
        for direction, library in libraries.items()
        if library.of_asm
        for kind in _words()["directions"][direction]["asm_kinds"]
    }
    # Kernels of this project's own are in every library.
    instances += [e for e in manifest["instances"] if e["kind"] in asm or e["provider"] == "own"]
    return list(
        dict.fromkeys(
            each["code_objects"][arch]["key"]
            for each in instances
            for arch in chosen
            if arch in each["code_objects"]
        )
    )
