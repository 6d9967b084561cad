# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the table of traits for C++ and for the ctypes mirrors of the tests."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from kernels.launch_table import table
from kernels.launch_table.traits import TABLE, Trait

_HEADER = flags.DEFINE_string("header", None, "traits.h", required=True)
_JSON = flags.DEFINE_string("json", None, "traits.json", required=True)

_SIZES = ("head_size_qk", "head_size_v")
_MATCHES = {"exact": "kExact", "at_least": "kAtLeast", "padding": "kPadding", "other": "kOther"}


def _constant(name: str) -> str:
    """fwd_splitkv -> kFwdSplitkv"""
    return "k" + "".join(part.capitalize() for part in name.split("_"))


def _enum(name: str, values: dict[str, int], docs: dict[str, str]) -> str:
    lines = "".join(
        f"  {_constant(value)} = {number},{'  // ' + docs[value] if value in docs else ''}\n"
        for value, number in values.items()
    )
    names = [""] * (max(values.values()) + 1)
    for value, number in values.items():
        names[number] = value
    listed = ", ".join(f'"{value}"' for value in names)
    return f"""enum class {name} : uint8_t {{
{lines}}};
inline constexpr const char* k{name}Names[] = {{{listed}}};
constexpr const char* name_of({name} value) {{ return k{name}Names[static_cast<int>(value)]; }}

"""


def _texts(trait: Trait) -> list[str]:
    """The name of each value, by its number."""
    if isinstance(trait.text, str):
        return []
    spelled = {TABLE.number(trait, value): trait.text[str(value).lower()] for value in trait.values}
    return [spelled.get(number, "") for number in range(max(spelled) + 1)]


def _info(trait: Trait) -> str:
    kinds = sum(1 << TABLE.kind_number(kind) for kind in trait.kinds)
    texts = f"kTexts_{trait.field}" if not trait.is_size else "nullptr"
    return (
        f"    {{{texts}, {len(_texts(trait))}, Match::{_MATCHES[trait.match]}, "
        f"offsetof(Traits, {trait.field}), sizeof(Traits::{trait.field}), {kinds:#x}}},\n"
    )


def _schedules() -> str:
    """Those of devices: of an arch the first that has the device's compute units, or 0."""
    return "".join(
        f'    {{"{arch}", {count}, Schedule::{_constant(schedule)}}},\n'
        for arch, schedules in TABLE.schedules.items()
        for schedule, count in (
            *((name, count) for name, counts in schedules.items() for count in counts),
            (next(iter(schedules)), 0),
        )
    )


def _backward_choices() -> str:
    masks = TABLE.enums["MaskShape"]
    return "".join(
        f'    {{"{arch}", '
        + "".join(f"{{{least}, {greatest}}}, " for least, greatest in (c[s] for s in _SIZES))
        + f"{sum(1 << masks[mask] for mask in c['mask_shape']):#x}}},\n"
        for arch, choices in TABLE.backward_choices.items()
        for c in choices
    )


def header() -> str:
    """traits.h"""
    cxx_types = {"flag": "uint8_t", "size": "uint16_t"}
    kinds = {kind: number for number, kind in enumerate(TABLE.kinds)}
    fields = "".join(
        f"  {cxx_types.get(trait.type, trait.type)} {trait.field};  // {trait.doc}\n"
        for trait in TABLE.traits.values()
    )
    offsets = "".join(
        f"static_assert(offsetof(Traits, {TABLE.traits[name].field}) == {offset});\n"
        for name, offset in TABLE.offsets().items()
    )
    key = "".join(
        f" |\n         uint64_t{{static_cast<uint16_t>(traits.{trait.field})}} << {bit}"
        for trait, bit in TABLE.exact_key_layout()
        if trait is not None
    )
    key_masks = "".join(
        f"    {TABLE.exact_key_mask(kind):#x},  // {kind}\n" for kind in TABLE.kinds
    )
    texts = "".join(
        f"inline constexpr const char* kTexts_{trait.field}[] = "
        f"{{{', '.join(json.dumps(text) for text in _texts(trait))}}};\n"
        for trait in TABLE.traits.values()
        if not trait.is_size
    )
    hazards = {hazard: bit for bit, hazard in enumerate(TABLE.hazards)}
    hazard_texts = ", ".join(json.dumps(text) for text in TABLE.hazards.values())
    providers = ", ".join(f'"{TABLE.provider_of[kind]}"' for kind in TABLE.kinds)
    sizes = "".join(
        f"inline constexpr uint32_t kPacked{name}Size = {size};\n"
        for name, size in table.RECORD_SIZES.items()
    )
    return f"""// Generated from traits.toml. Do not edit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::kernels {{

{_enum("Kind", kinds, dict(TABLE.kinds))}{
        "".join(_enum(name, dict(values), {}) for name, values in TABLE.enums.items())
    }// By kind: who brings its kernels.
inline constexpr const char* kProviders[] = {{{providers}}};
constexpr const char* provider_of(Kind kind) {{ return kProviders[static_cast<int>(kind)]; }}

// The schedules of devices: of an arch's, the first that has a device's compute units, or 0.
struct DeviceSchedule {{
  std::string_view arch;
  uint32_t compute_units;
  Schedule schedule;
}};
inline constexpr DeviceSchedule kDeviceSchedules[] = {{
{_schedules()}}};
constexpr Schedule schedule_of(std::string_view arch, uint32_t compute_units) {{
  for (const DeviceSchedule& device : kDeviceSchedules) {{
    const bool counts = device.compute_units == 0 || device.compute_units == compute_units;
    if (device.arch == arch && counts) return device.schedule;
  }}
  return Schedule{{}};
}}

// The problems for which AITER chooses its backward kernels on an arch: some of those that they
// serve. Where an arch has none of these, it is all of them.
struct BackwardChoice {{
  struct Sizes {{
    int32_t least, greatest;
    constexpr bool has(int32_t size) const {{ return least <= size && size <= greatest; }}
  }};
  std::string_view arch;
  Sizes head_size_qk, head_size_v;
  uint32_t mask_shapes;  // bit s: MaskShape s
}};
inline constexpr BackwardChoice kBackwardChoices[] = {{
{_backward_choices()}}};
constexpr bool is_backward_choice(std::string_view arch, int32_t head_size_qk, int32_t head_size_v,
                                  MaskShape mask_shape) {{
  bool is_known = false;
  for (const BackwardChoice& choice : kBackwardChoices) {{
    if (choice.arch != arch) continue;
    is_known = true;
    if (choice.head_size_qk.has(head_size_qk) && choice.head_size_v.has(head_size_v) &&
        choice.mask_shapes >> static_cast<int>(mask_shape) & 1) {{
      return true;
    }}
  }}
  return !is_known;
}}

// The problems on which an object that is known to be wrong may be wrong: bits of
// CodeObjectRow::hazards.
{_enum("Hazard", hazards, {})}inline constexpr const char* kHazardTexts[] = {{{hazard_texts}}};
constexpr uint32_t bit(Hazard hazard) {{ return uint32_t{{1}} << static_cast<int>(hazard); }}

// The choices of which an instance was compiled. A trait that its kind does not have is 0.
struct Traits {{
  Kind kind;
{fields}}};
static_assert(sizeof(Traits) == {struct.calcsize(TABLE.packed_format())});
{offsets}
// All traits that are matched exactly, and the greatest head sizes, as one number.
constexpr uint64_t exact_key(const Traits& traits) {{
  return uint64_t{{static_cast<uint8_t>(traits.kind)}}{key};
}}

// By kind: the bits of an exact key that its rows may have.
inline constexpr uint64_t kExactKeyMasks[] = {{
{key_masks}}};

enum class Match : uint8_t {{
  kExact,
  kAtLeast,  // serves a problem's value and those below
  kPadding,  // whether a dimension's bounds are checked
  kOther,    // by a rule of its own, in dispatch
}};

// A trait, for what is the same for all of them.
struct TraitInfo {{
  const char* const* texts;  // what each value is called, "" of none; NULL of a size
  uint32_t text_count;
  Match match;
  uint8_t offset, size;  // in Traits
  uint32_t kinds;        // bit k: kind k has it

  constexpr bool of(Kind kind) const {{ return kinds >> static_cast<int>(kind) & 1; }}
  uint32_t value(const Traits& traits) const {{
    uint16_t value = 0;
    std::memcpy(&value, reinterpret_cast<const char*>(&traits) + offset, size);
    return value;
  }}
}};

{texts}
inline constexpr TraitInfo kTraits[] = {{
{"".join(_info(trait) for trait in TABLE.traits.values())}}};

// The records' sizes as the packer has them.
{sizes}
}}  // namespace AITER_ATTN_NAMESPACE::kernels
"""


def mirror() -> dict[str, object]:
    """The data of a ctypes mirror: names by number, and the fields of Traits in their order."""
    return {
        "kinds": list(TABLE.kinds),
        "enums": TABLE.enums,
        "traits": [
            {
                "name": trait.name,
                "field": trait.field,
                "type": trait.type,
                "values": list(trait.values),
                "size": 2 if trait.is_size else 1,
                "kinds": list(trait.kinds),
            }
            for trait in TABLE.traits.values()
        ],
    }


def main(_arguments: Sequence[str]) -> None:
    Path(_HEADER.value).write_text(header(), "utf-8")
    Path(_JSON.value).write_text(json.dumps(mirror(), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    app.run(main)
