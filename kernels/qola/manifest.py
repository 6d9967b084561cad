# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""QoLA's manifest: the libraries that it asks for, and the variant set of their kernels.

Standard library only: it runs while repositories are fetched, before anything is built.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import tomllib

from kernels.qola import receipts, tables
from kernels.variants.values import VariantSetError, listing, require_known

# Library -> its direction.
LIBRARIES = {"libmha_fwd": "fwd", "libmha_bwd": "bwd"}
MODES = ("cpp_itfs", "pybind")
_DEFAULT_MODE = "pybind"  # QoLA's

TABLES = ("qola", "build", "modules", *tables.TABLES)
QOLA_KEYS = ("aiter_commit", "namespace", "patches_dir", "rocm_versions")
BUILD_KEYS = ("architectures", "mode")
MODULE_KEYS = (
    "drop_directions",
    "drop_srcs",
    "group",
    "hsa_subdirs",
    "mode",
    "name",
    "receipt",
)
DEFAULT_RECEIPT = 600  # AITER's own for these libraries

# Keys of a module that change how AITER's sources are compiled.
COMPILING = (
    "blob_gen_cmd",
    "extra_include",
    "extra_ldflags",
    "flags_extra_cc",
    "flags_extra_hip",
    "hip_clang_path",
    "hipify",
    "is_python_module",
    "is_standalone",
    "md_name",
    "srcs",
    "third_party",
    "torch_exclude",
    "verbose",
)
# Flags of these that leave Composable Kernel's kernels out.
WITHOUT_CK = ("-DENABLE_CK=0", "-DONLY_FAV3=1")

DIRECTIONS = ("batch_prefill", "bwd", "fwd", "fwd_appendkv", "fwd_splitkv", "pagedkv_prefill")
# Library -> the sources without which it has no function.
_SOURCES = {name: (f"mha_{this}.cu", f"qola_mha_{this}.cu") for name, this in LIBRARIES.items()}
# Library -> the folders of AITER's objects that it may have.
HSA_SUBDIRS = {"libmha_fwd": ("fmha_fwd_bf16", "fmha_v3_fwd"), "libmha_bwd": ("fmha_v3_bwd",)}
_ABSENT_SUBDIR = "fmha_fwd_bf16"  # of an arch that has no record here

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


class ManifestError(VariantSetError):
    """A mistake in a manifest, or a request that nothing here serves, in one or two lines."""


@dataclasses.dataclass(frozen=True)
class Module:
    """A library of a manifest.

    composable_kernel  whether it has Composable Kernel's kernels
    asm                whether it has AITER's objects
    """

    name: str
    receipt: int
    composable_kernel: bool
    asm: bool

    @property
    def direction(self) -> str:
        return LIBRARIES[self.name]


@dataclasses.dataclass(frozen=True)
class Manifest:
    """The request that a manifest makes.

    aiter_commit   as it is written; "" where it is left out
    architectures  of [build]
    modules        those of the chosen groups
    providers      of kernels, as --//kernels:providers has them
    variant_set    the text of a variant set file; "" where no kernel of Composable Kernel is wanted
    reported       keys that have no meaning here, and why, for people
    """

    path: str
    namespace: str
    aiter_commit: str
    rocm_versions: tuple[str, ...]
    architectures: tuple[str, ...]
    modules: tuple[Module, ...]
    providers: tuple[str, ...]
    variant_set: str
    reported: tuple[str, ...]


def is_manifest(text: str) -> bool:
    """Whether TOML has tables of QoLA's own builder; False where it is not TOML."""
    try:
        return not tables.ELSEWHERE.keys().isdisjoint(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError):
        return False


def _string(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise ManifestError(f"{where}: {key} = {value!r}: it is a string.")
    return value


def _strings(table: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ManifestError(f"{where}: {key} = {value!r}: it is a list of strings.")
    return tuple(dict.fromkeys(value))


def _only(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in table:
        require_known(key, known, "key", where)


def _document(text: str, path: str) -> dict[str, Any]:
    """The tables of a manifest, each of its form."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(f"{path}: not TOML: {error}") from None
    except RecursionError:
        raise ManifestError(f"{path}: not TOML that can be read: nested too deep") from None
    for name, value in document.items():
        require_known(name, TABLES, "table", path)
        if name in ("qola", "build"):
            if not isinstance(value, dict):
                raise ManifestError(f"{path}: {name} must be written as a table [{name}].")
        elif not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise ManifestError(f"{path}: {name} must be written as [[{name}]] tables.")
    return document


def _require_mode(mode: str, where: str) -> None:
    require_known(mode, MODES, "mode", where)
    if mode != "cpp_itfs":
        raise ManifestError(
            f"{where}: mode is {mode}, of Python modules that are compiled against one torch's C++"
            " library, which no lock here has: they would serve that torch alone. Write mode ="
            ' "cpp_itfs" or give --mode=cpp_itfs for the libraries; the package aiter_attn has the'
            " modules' functions for any torch"
        )


def _module(table: Mapping[str, Any], where: str, reported: list[str]) -> Module:
    """One of [[modules]], of a name that is known."""
    name = table["name"]
    direction = LIBRARIES[name]
    _only(table, (*MODULE_KEYS, *COMPILING), where)

    for source in _strings(table, "drop_srcs", where):
        if source in _SOURCES[name]:
            raise ManifestError(
                f"{where}: drop_srcs has {source}, without which {name} has no function. "
                "Remove it, or the module."
            )
        reported.append(f"{where}: drop_srcs: {source}: no function of it is built here")

    dropped = _strings(table, "drop_directions", where)
    for each in dropped:
        require_known(each, DIRECTIONS, "value of drop_directions", where)
    if direction == "fwd":
        for each in ("fwd_splitkv", "batch_prefill"):
            if each not in dropped:
                reported.append(
                    f"{where}: kernels of {each} are left out: the library has no function for them"
                )
    composable_kernel = direction not in dropped
    for key in COMPILING:
        if key not in table:
            continue
        said = f"{where}: {key}: AITER's sources are not compiled here"
        if any(flag in str(table[key]) for flag in WITHOUT_CK):
            composable_kernel = False
            said += "; Composable Kernel's kernels are left out, as it asks"
        reported.append(said)

    asm = True
    if "hsa_subdirs" in table:
        subdirs = _strings(table, "hsa_subdirs", where)
        for each in subdirs:
            require_known(each, HSA_SUBDIRS[name], "value of hsa_subdirs", where)
        if _ABSENT_SUBDIR in subdirs:
            reported.append(
                f"{where}: hsa_subdirs: no object of {_ABSENT_SUBDIR} serves an arch here"
            )
        asm = bool(subdirs)
    if not (composable_kernel or asm):
        raise ManifestError(
            f"{where}: no kernel is left for {name}: those of Composable Kernel are left out, and "
            f"hsa_subdirs is empty. Allowed in it: {listing(HSA_SUBDIRS[name])}."
        )
    receipt = table.get("receipt", DEFAULT_RECEIPT)
    receipts.filter_of(receipt, direction, where)
    return Module(name, receipt, composable_kernel, asm)


def _modules(
    document: Mapping[str, Any],
    path: str,
    mode: str,
    groups: Sequence[str],
    reported: list[str],
) -> tuple[Module, ...]:
    """Those of the chosen groups."""
    entries: dict[str, tuple[str, Mapping[str, Any]]] = {}
    known_groups: dict[str, None] = {}
    for number, table in enumerate(document.get("modules", []), start=1):
        where = f"{path}: [[modules]] #{number}"
        name, group = _string(table, "name", where), _string(table, "group", where)
        if not name:
            raise ManifestError(f"{where}: has no name. Allowed: {listing(LIBRARIES)}.")
        if name in entries:
            raise ManifestError(f"{where}: {name} is there twice; keep one.")
        entries[name] = where, table
        known_groups |= {group: None} if group else {}
    for group in groups:
        if group not in known_groups:
            named = f"its groups are {listing(known_groups)}" if known_groups else "it has none"
            raise ManifestError(f"{path}: no module is of the group {group!r}; {named}.")
    found = []
    for name, (where, table) in entries.items():
        if groups and table.get("group") not in groups:
            continue
        if name not in LIBRARIES:
            hint = " Choose others by --group." if known_groups and not groups else ""
            raise ManifestError(
                f"{where}: {name} is not built here. Allowed: {listing(LIBRARIES)}.{hint}"
            )
        _require_mode(_string(table, "mode", where) or mode, where)
        found.append(_module(table, where, reported))
    if not found:
        raise ManifestError(
            f"{path}: asks for no library: add [[modules]] with name = "
            + " or ".join(f'"{name}"' for name in LIBRARIES)
            + ' and mode = "cpp_itfs".'
        )
    return tuple(found)


def _toml(value: object, where: str) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_toml(each, where) for each in value)}]"
    if isinstance(value, str | bool | int):
        return json.dumps(value, ensure_ascii=False)
    raise ManifestError(f"{where}: {value!r}: values are strings, integers, booleans, or lists.")


def _variants(module: Module, given: Sequence[Mapping[str, Any]], path: str) -> str:
    """The tables of a library's direction, each within the library's receipt."""
    name = f"mha_{module.direction}_variants"
    if given and not module.composable_kernel:
        raise ManifestError(
            f"{path}: [[{name}]] chooses kernels of Composable Kernel, which {module.name} leaves "
            "out; remove one of both."
        )
    text = ""
    for number, table in enumerate(given or [{}], start=1):
        where = f"{path}: [[{name}]] #{number}"
        receipt = table.get("receipt", module.receipt)
        if receipt != module.receipt:
            raise ManifestError(
                f"{where}: receipt is {receipt!r}, and that of {module.name} is {module.receipt}; "
                "keep one."
            )
        text += f"\n[[{name}]]\n"
        for key, value in {**table, "receipt": receipt}.items():
            shown = key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)
            text += f"{shown} = {_toml(value, f'{where}: {key}')}\n"
    return text


def read(text: str, path: str, *, mode: str = "", groups: Sequence[str] = ()) -> Manifest:
    """A manifest. Raises VariantSetError.

    path    for messages
    mode    in the place of [build] mode, "": none. A module's own goes before it
    groups  of modules; empty: all modules
    """
    document = _document(text, path)
    qola, build = document.get("qola", {}), document.get("build", {})
    _only(qola, QOLA_KEYS, f"{path}: [qola]")
    _only(build, BUILD_KEYS, f"{path}: [build]")
    reported: list[str] = []

    namespace = _string(qola, "namespace", f"{path}: [qola]")
    if not _IDENTIFIER.fullmatch(namespace):
        raise ManifestError(
            f"{path}: [qola]: namespace is {namespace!r}, which is not a C identifier. "
            "Use letters, digits and underscores, e.g. te."
        )
    if patches := _string(qola, "patches_dir", f"{path}: [qola]"):
        reported.append(
            f"{path}: [qola]: patches_dir: AITER's sources are not compiled here, and {patches} is "
            "not read"
        )
    modules = _modules(
        document,
        path,
        mode or _string(build, "mode", f"{path}: [build]") or _DEFAULT_MODE,
        groups,
        reported,
    )

    named = {table["name"] for table in document.get("modules", [])}
    chosen = {module.direction: module for module in modules}
    variant_set = ""
    for name, direction in tables.TABLES.items():
        given = document.get(name, [])
        library = f"libmha_{direction}"
        if direction in chosen and (given or chosen[direction].composable_kernel):
            variant_set += _variants(chosen[direction], given, path)
        elif given and library not in named:
            raise ManifestError(
                f"{path}: [[{name}]] without the library: these tables are Python modules to QoLA, "
                f'which are not built here. Add [[modules]] with name = "{library}".'
            )
    asm = {module.asm for module in modules}
    if len(asm) > 1:
        raise ManifestError(
            f"{path}: hsa_subdirs gives AITER's objects to one library and none to the other; "
            "here both have them or neither. Give each its own, or an empty list."
        )
    providers = [name for name, there in (("ck", variant_set), ("asm", asm == {True})) if there]
    return Manifest(
        path=path,
        namespace=namespace,
        aiter_commit=_string(qola, "aiter_commit", f"{path}: [qola]"),
        rocm_versions=_strings(qola, "rocm_versions", f"{path}: [qola]"),
        architectures=_strings(build, "architectures", f"{path}: [build]"),
        modules=modules,
        providers=tuple(providers),
        variant_set=variant_set and f"# Of {path}.\n{variant_set}",
        reported=tuple(reported),
    )


def pin_of(commit: str, commits: Mapping[str, str], where: str) -> str:
    """The pin whose structs a commit of AITER has. Raises ManifestError.

    commit   as people abbreviate it: seven digits at least, and dots behind them are left out
    commits  the first digits of each commit that is known -> its pin
    """
    digits = commit.rstrip(".…").lower()
    if not commit:
        raise ManifestError(f"{where}: has no aiter_commit. Allowed: {listing(commits)}.")
    if not _COMMIT.fullmatch(digits):
        raise ManifestError(
            f"{where}: aiter_commit is {commit!r}, which is no commit: seven to forty hexadecimal "
            f"digits. Allowed: {listing(commits)}."
        )
    for known, pin in commits.items():
        if digits.startswith(known):
            return pin
    raise ManifestError(
        f"{where}: aiter_commit {commit} is not known: the structs of its headers were not "
        f"compared. Allowed: {listing(commits)}."
    )


def archs_of(
    manifest: Manifest, given: Sequence[str], environment: str, known: Sequence[str]
) -> list[str]:
    """The archs to build for. Raises ManifestError.

    given        of the command line, which go before those of the manifest; `;` lists
    environment  GPU_ARCHS, which stands behind both; `;` lists
    """
    for source, values in (
        ("--arch", given),
        (f"{manifest.path}: [build] architectures", manifest.architectures),
        ("GPU_ARCHS", [environment]),
    ):
        archs = [arch.strip() for value in values for arch in value.split(";") if arch.strip()]
        for arch in archs:
            if arch not in known:
                raise ManifestError(f"{source}: unknown arch {arch!r}. Allowed: {listing(known)}.")
        if archs:
            return list(dict.fromkeys(archs))
    raise ManifestError(
        f"{manifest.path}: names no arch, and this machine's GPU is not asked. Give --arch or "
        f"[build] architectures. Allowed: {listing(known)}."
    )


def require_rocm(manifest: Manifest, majors: Sequence[str]) -> None:
    """Raises ManifestError for a version of ROCm whose runtime the libraries do not load.

    majors  those that they load
    """
    for version in manifest.rocm_versions:
        if version.split(".")[0] not in majors:
            raise ManifestError(
                f"{manifest.path}: [qola]: rocm_versions has {version!r}; the libraries load the "
                f"HIP runtime of ROCm {listing(majors)}. Remove it."
            )
