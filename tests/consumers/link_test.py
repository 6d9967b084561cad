# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The libraries for a linker: names, exports, and which consumers they serve."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

_PINS = sorted(n.removeprefix("CONSUMER_") for n in os.environ if n.startswith("CONSUMER_"))
_GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
          "ld-linux-x86-64.so.2"}  # fmt: skip


def files(what: str, pin: str) -> list[Path]:
    return [Path(path) for path in os.environ[f"{what}_{pin}"].split()]


def libraries(pin: str) -> list[Path]:
    return [*files("FWD", pin), *files("BWD", pin)]


def undefined(objects: list[Path]) -> set[str]:
    """The functions of AITER's interface that a linker does not find."""
    command = [os.environ["LINKER"], "-shared", "-z", "defs", "--error-limit=0", "-o", "/dev/null",
               "--whole-archive", *map(str, objects)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1  # there is no C++ library
    assert "undefined symbol: operator delete(void*" in done.stderr
    return set(re.findall(r"undefined symbol: (aiter::\w+::mha_\w+)\(", done.stderr))


def archive_of(pin: str) -> Path:
    return next(f for f in files("CONSUMER", pin) if f.name.endswith(".a"))


def of_aiter(pin: str, this: str) -> list[str]:
    """The functions of a library, by the linker's names."""
    start = f"_ZN5aiter13aiter_{pin}"
    found = [f"{start}7mha_{this}ENS0_12mha_{this}_argsERKN7ck_tile13stream_configE"]
    if this == "fwd":
        string = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
        traits = f"RKN7ck_tile13stream_configE{string}b9mask_enum9bias_enumb"
        inside = f"{start}10by_offsets"
        found += [
            f"{inside}15mha_fwd_splitkvE21fmha_fwd_splitkv_args{traits}b",
            f"{inside}17mha_batch_prefillE23fmha_batch_prefill_args{traits}16quant_scale_enumb",
        ]
    if (pin, this) == ("7a24cd8", "fwd"):
        for name in ("28mha_fwd_calculate_num_splits", "22mha_fwd_workspace_size"):
            found.append(f"{start}{name}ERKNS0_12mha_fwd_argsE")
    return found


@pytest.mark.parametrize("this", ["fwd", "bwd"])
@pytest.mark.parametrize("pin", _PINS)
def test_a_library(pin: str, this: str) -> None:
    (path,) = files(this.upper(), pin)
    name = f"libmha_{this}.so"
    assert path.name == name
    with path.open("rb") as file:
        elf = ELFFile(file)
        dynamic = list(elf.get_section_by_name(".dynamic").iter_tags())
        assert [t.soname for t in dynamic if t.entry.d_tag == "DT_SONAME"] == [name]
        assert {t.needed for t in dynamic if t.entry.d_tag == "DT_NEEDED"} <= _GLIBC
        symbols = elf.get_section_by_name(".dynsym").iter_symbols()
        defined = [s.name for s in symbols if s["st_shndx"] != "SHN_UNDEF" and s.name]
        nodes = elf.get_section_by_name(".gnu.version_d").iter_versions()
        assert [next(names).name for _, names in nodes] == [name, "AITER_MHA_1"]
    assert sorted(defined) == sorted(of_aiter(pin, this))


def test_qolas_libraries() -> None:
    for path in files("QOLA", "7a24cd8"):
        this = "fwd" if "fwd" in path.name else "bwd"
        assert path.name == f"aiter_libmha_{this}.so"
        args = f"RKN5aiter13aiter_7a24cd812mha_{this}_argsE"
        qola = {f"7mha_{this}E{args}RKN7ck_tile13stream_configE"}
        if this == "fwd":
            qola |= {f"28mha_fwd_calculate_num_splitsE{args}", f"22mha_fwd_workspace_sizeE{args}",
                     f"27mha_fwd_with_sink_supportedE{args}"}  # fmt: skip
        else:
            qola.add("22mha_bwd_workspace_sizeERK15fmha_bwd_traits")
        with path.open("rb") as file:
            symbols = ELFFile(file).get_section_by_name(".dynsym").iter_symbols()
            defined = {s.name for s in symbols if s["st_shndx"] != "SHN_UNDEF" and s.name}
        names = {f"_ZN4qola5aiter{name}" for name in qola}
        assert defined == names | set(of_aiter("7a24cd8", this))


@pytest.mark.parametrize("what", ["shared", "archive"])
@pytest.mark.parametrize("pin", _PINS)
@pytest.mark.parametrize("caller", _PINS)
def test_a_consumer_links_with_its_pin_alone(caller: str, pin: str, what: str) -> None:
    found = libraries(pin) if what == "shared" else files("ARCHIVE", pin)
    missing = undefined([archive_of(caller), *found])
    inner = f"aiter::aiter_{caller}"
    assert missing == (set() if caller == pin else {f"{inner}::mha_fwd", f"{inner}::mha_bwd"})
