# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Sources of stand-ins for the libraries that JAX's ROCm plugin is linked with.

    stand_ins --library librocblas.so.5 ... --out FOLDER PLUGIN.so [EXTENSION.so ...]

For each library, LIBRARY.c and LIBRARY.lds: every symbol that the plugin takes from it, with its
version. A function says its name and aborts; those that start-up calls give the answers in ANSWERS.
All are weak, so that a real one may be linked in front of them.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from absl import app, flags
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

_LIBRARIES = flags.DEFINE_multi_string("library", None, "soname of a library", required=True)
_OUT = flags.DEFINE_string("out", None, "folder of the sources", required=True)

# Libraries of every host.
_OF_THE_HOST = re.compile(r"lib(rt|dl|m|pthread|stdc\+\+|c|gcc_s)\.so|ld-linux")
# A symbol without a version does not say whose it is: by the start of its name.
_OWNERS = (
    (r"_ZNK?13hipblaslt_ext|hipblasLt", "libhipblaslt.so.1"),
    (r"hipblas", "libhipblas.so.3"),
    (r"hipfft", "libhipfft.so.0"),
    (r"hipsolver", "libhipsolver.so.1"),
    (r"hipsparse", "libhipsparse.so.4"),
    (r"miopen", "libMIOpen.so.1"),
    (r"nccl", "librccl.so.1"),
    (r"rocblas", "librocblas.so.5"),
    (r"rsmi_", "librocm_smi64.so.1"),
    (r"rocsolver", "librocsolver.so.0"),
    (r"rocprofiler", "librocprofiler-sdk.so.1"),
    (r"_*hip[A-Z]", "libamdhip64.so.7"),
)
# Of which there is more than stand-ins: all of HIP, and what attaches the emulator to it.
_MORE = {"libamdhip64.so.7": ["hip*", "emulated_hip_*"]}
_NOT_SUPPORTED = "return 2;"
# C statements of a function of four pointers, a to d.
ANSWERS = {
    "__hipRegisterFatBinary": "static void* module; return (unsigned long)&module;",
    "__hipRegisterFunction": "return 0;",
    "__hipRegisterVar": "return 0;",
    "__hipUnregisterFatBinary": "return 0;",
    "hipblasLtCreate": "*(void**)a = &handle; return 0;",
    "miopenCreateWithStream": "*(void**)a = &handle; return 0;",
    "rocblas_create_handle": "*(void**)a = &handle; return 0;",
    "rocprofiler_force_configure": "return 0;",  # by a static initialiser
    "rsmi_init": _NOT_SUPPORTED,
    "rsmi_status_string": '*(const char**)b = "a stand-in"; return 0;',
}


@dataclasses.dataclass(frozen=True)
class Symbol:
    name: str
    version: str  # "" for none
    library: str


def needed_symbols(path: Path) -> Iterator[Symbol]:
    """The symbols that an ELF file takes from libraries that a host may lack.

    Raises ValueError for a symbol without a version that no library is known for.
    """
    with path.open("rb") as file:
        elf = ELFFile(file)
        dynamic = elf.get_section_by_name(".dynamic")
        assert isinstance(dynamic, DynamicSection)
        needed = {tag.needed for tag in dynamic.iter_tags("DT_NEEDED")}
        versions = {}
        for section in elf.iter_sections():
            if isinstance(section, GNUVerNeedSection):
                for library, used in section.iter_versions():
                    versions |= {v.entry["vna_other"]: (v.name, library.name) for v in used}
        numbers = elf.get_section_by_name(".gnu.version")
        for i, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
            if symbol["st_shndx"] != "SHN_UNDEF" or not symbol.name:
                continue
            number = numbers.get_symbol(i).entry["ndx"] if numbers else 0
            if number in versions:
                version, library = versions[number]
                if not _OF_THE_HOST.match(library):
                    yield Symbol(symbol.name, version, library)
            elif symbol["st_info"]["bind"] != "STB_WEAK":
                owner = next((o for start, o in _OWNERS if re.match(start, symbol.name)), None)
                if owner in needed:
                    yield Symbol(symbol.name, "", owner)
                elif owner:
                    raise ValueError(f"{path}: {symbol.name} is of {owner}, which is not needed")


def sources(library: str, symbols: Sequence[Symbol]) -> tuple[str, str]:
    """(C source, version script) of a library with these symbols."""
    code = [
        "extern void abort(void);",
        "extern long write(int, const void*, unsigned long);",
        "static void refuse(const char* text, unsigned long size) {",
        "  write(2, text, size);",
        "  abort();",
        "}",
        "static char handle;",
    ]
    for name in sorted({s.name for s in symbols}):
        weak = "__attribute__((weak)) unsigned long"
        if name in ANSWERS:
            code.append(f"{weak} {name}(void* a, void* b, void* c, void* d) {{ {ANSWERS[name]} }}")
        else:
            text = f"{library} is a stand-in: it has no {name}"
            code.append(f'{weak} {name}(void) {{ refuse("{text}\\n", {len(text) + 1}); }}')
    nodes = collections.defaultdict(set)
    for s in symbols:
        nodes[s.version].add(s.name)
    script = [
        f"{version} {{ global: {'; '.join(sorted(names))}; }};"
        for version, names in sorted(nodes.items())
        if version
    ]
    others = "".join(f"{name}; " for name in [*sorted(nodes.get("", ())), *_MORE.get(library, ())])
    # A node without a name cannot stand beside others.
    name, public = "STAND_IN " if script else "", f"global: {others}" if others else ""
    script.append(f"{name}{{ {public}local: *; }};")
    return "\n".join(code) + "\n", "\n".join(script) + "\n"


def main(argv: Sequence[str]) -> None:
    by_library: dict[str, list[Symbol]] = {library: [] for library in _LIBRARIES.value}
    for path in map(Path, argv[1:]):
        for symbol in needed_symbols(path):
            if symbol.library not in by_library:
                raise app.UsageError(
                    f"{path} needs {symbol.library}; add it to the libraries of BUILD.bazel, which "
                    f"are {', '.join(sorted(by_library))}"
                )
            by_library[symbol.library].append(symbol)
    for library, symbols in by_library.items():
        code, script = sources(library, symbols)
        Path(_OUT.value, f"{library}.c").write_text(code)
        Path(_OUT.value, f"{library}.lds").write_text(script)


if __name__ == "__main__":
    app.run(main)
