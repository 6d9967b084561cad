# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The files that each part of the library may include, directly or through others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

# The files of the file's own folder.
_BESIDE = "{folder}/*"

# The contract of kernels with the library.
_CONTRACT = ["aiter/attn.h", "kernels/launch_table/*"]

# The structs of the C ABI, and their fields as data.
_STRUCTS = ["aiter/attn.h", "aiter/fields.h", "aiter/norm.h"]

# The first line that matches a file holds for it; "*" crosses folders. The files that one reaches
# must match one of its patterns. A file may always reach those beside it under its own name.
LAYERS: dict[str, list[str]] = {
    # The public face stands alone.
    "aiter/attn.h": [],
    "aiter/attn.hpp": ["aiter/attn.h", "aiter/norm.h"],
    "aiter/fields.h": ["aiter/attn.h", "aiter/norm.h"],
    "aiter/functions.h": [],
    "aiter/norm.h": ["aiter/attn.h"],
    "aiter/status.h": ["aiter/attn.h", "aiter/runtime/error.h"],
    "aiter/dist/compress.cc": ["zstd.h"],  # a program
    # The runtime knows neither attention nor launch tables, and no GPU runtime above its driver.
    "aiter/runtime/error.h": [],
    "aiter/runtime/driver/*": [
        "aiter/runtime/error.h",
        "aiter/runtime/fork_mutex.h",
        "aiter/runtime/hip_versions.h",
        "aiter/runtime/shared_library.h",
        "aiter/runtime/text.h",
        "aiter/runtime/driver/*",
        "hip/*",
    ],
    # Code objects are found and made without any GPU runtime. Only the list of providers knows the
    # packs that the library is linked with.
    "aiter/runtime/library_store.*": [
        "aiter/runtime/environment.h",
        "aiter/runtime/error.h",
        "aiter/runtime/fork_mutex.h",
        "aiter/runtime/once.h",
        "aiter/runtime/text.h",
        "aiter/runtime/kit/*",
        "aiter/runtime/remote/*",
        "aiter/runtime/rtc/*",
        "aiter/runtime/store/*",
        "kernels/code_object/embedded_pack.h",
        "kernels/hiprtc/hiprtc_headers.h",
    ],
    # It compiles in the process, the others start a program.
    "aiter/runtime/kit/hiprtc_kernels*": [
        "aiter/runtime/error.h",
        "aiter/runtime/fork_mutex.h",
        "aiter/runtime/interrupt.h",
        "aiter/runtime/text.h",
        "aiter/runtime/kit/*",
        "aiter/runtime/rtc/compiler.h",
        "aiter/runtime/rtc/compilers.h",
        "aiter/runtime/store/*",
    ],
    "aiter/runtime/kit/*": [
        "aiter/runtime/environment.h",
        "aiter/runtime/error.h",
        "aiter/runtime/fork_mutex.h",
        "aiter/runtime/interrupt.h",
        "aiter/runtime/text.h",
        "aiter/runtime/kit/*",
        "aiter/runtime/store/*",
    ],
    "aiter/runtime/remote/*": [
        "aiter/runtime/environment.h",
        "aiter/runtime/error.h",
        "aiter/runtime/fork_mutex.h",
        "aiter/runtime/interrupt.h",
        "aiter/runtime/shared_library.h",
        "aiter/runtime/text.h",
        "aiter/runtime/remote/*",
        "aiter/runtime/store/*",
    ],
    "aiter/runtime/store/*": [
        "aiter/runtime/environment.h",
        "aiter/runtime/error.h",
        "aiter/runtime/fork_mutex.h",
        "aiter/runtime/interrupt.h",
        "aiter/runtime/text.h",
        "aiter/runtime/store/*",
    ],
    "aiter/runtime/rtc/measure.cc": ["aiter/runtime/*"],  # a program
    "aiter/runtime/rtc/*": [
        "aiter/runtime/environment.h",
        "aiter/runtime/error.h",
        "aiter/runtime/fork_mutex.h",
        "aiter/runtime/hip_versions.h",
        "aiter/runtime/shared_library.h",
        "aiter/runtime/text.h",
        "aiter/runtime/rtc/*",
        "aiter/runtime/store/*",
    ],
    "aiter/runtime/*": [
        "aiter/runtime/*.h",
        "aiter/runtime/driver/driver.h",
        "aiter/runtime/kit/*",
        "aiter/runtime/remote/*",
        "aiter/runtime/rtc/*",
        "aiter/runtime/store/*",
    ],
    # The part that passes share knows none of them. The CPU reference computes; dispatch returns
    # values and never text. Neither launches.
    "aiter/attention/problem/*": [
        *_STRUCTS,
        "aiter/attention/problem/*",
        "aiter/runtime/abi.h",
        "aiter/runtime/error.h",
        "aiter/runtime/regions.h",
    ],
    "aiter/attention/reference/*": [
        "aiter/attn.h",
        "aiter/attention/problem/*",
        "aiter/attention/reference/*",
        "aiter/runtime/error.h",
        "aiter/runtime/float16.h",
        "aiter/runtime/float8.h",
        "aiter/runtime/interrupt.h",
        "aiter/runtime/parallel.h",
    ],
    "aiter/attention/dispatch.*": [
        "aiter/attn.h",
        "aiter/attention/problem/*",
        "aiter/runtime/error.h",
        "kernels/launch_table/*",
    ],
    "aiter/attention/launch.*": [
        "aiter/attn.h",
        "aiter/attention/code_object.h",
        "aiter/attention/dispatch.h",
        "aiter/attention/problem/*",
        "aiter/runtime/*",
        "kernels/launch_table/*",
    ],
    # A pass knows the rooms below, and no other pass (ROOMS). The list of them is for all others.
    "aiter/attention/passes/*/*": [
        *_STRUCTS,
        "aiter/attention/dispatch.h",
        "aiter/attention/launch.h",
        "aiter/attention/passes/*/*",
        "aiter/attention/problem/*",
        "aiter/attention/reference/*",
        "aiter/runtime/*",
        "kernels/archs/*",
        "kernels/launch_table/*",
    ],
    "aiter/attention/*": [
        *_STRUCTS,
        "aiter/attention/*",
        "aiter/runtime/*",
        "aiter/status.h",
        "kernels/archs/*",
        "kernels/launch_table/*",
        "kernels/published_sets/*",
    ],
    # Norms and attention know nothing of each other. Which kernel serves is values in, values out.
    "aiter/norm/configure.*": [
        "aiter/attn.h",
        "aiter/norm.h",
        "aiter/norm/problem.h",
        "aiter/runtime/error.h",
        "kernels/archs/*",
        "kernels/norm/configurations.h",
    ],
    "aiter/norm/*": [
        "aiter/attn.h",
        "aiter/norm.h",
        "aiter/norm/*",
        "aiter/runtime/*",
        "aiter/status.h",
        "kernels/archs/*",
        "kernels/code_object/ahead_of_time.h",
        "kernels/norm/ahead_of_time.h",
        "kernels/norm/arguments.h",
        "kernels/norm/configurations.h",
        "kernels/norm/sources.h",
    ],
    # AITER's interface stands on the C ABI, and asks HIP for memory and time itself.
    "aiter/compat/include/*": ["aiter/compat/include/*"],
    "aiter/compat/hip.*": [
        "aiter/runtime/error.h",
        "aiter/runtime/hip_versions.h",
        "aiter/runtime/shared_library.h",
    ],
    "aiter/compat/*": ["aiter/attn.h", "aiter/compat/*", "aiter/runtime/error.h"],
    # Kernels know the public face, and the contract.
    "kernels/launch_table/*": _CONTRACT,
    "kernels/published_sets/*": ["kernels/archs/*", "kernels/published_sets/*", *_CONTRACT],
    "kernels/*embedded_packs.cc": ["kernels/code_object/*"],
    "kernels/norm/ahead_of_time.h": ["kernels/code_object/*"],
    "kernels/ck_fmha/launch/*": [_BESIDE, *_CONTRACT],
    # Device code of our own knows its folder; its launch code the contract, too.
    "kernels/*/*launch.cc": [_BESIDE, *_CONTRACT],
    "kernels/*/*": [_BESIDE],
    # Fronts know the public face, and not each other.
    "python/xla_ffi/*": ["aiter/attn.h", "aiter/fields.h", "aiter/norm.h", "python/xla_ffi/*"],
    "python/extension/*": [
        "aiter/attn.h",
        "aiter/fields.h",
        "aiter/functions.h",
        "aiter/norm.h",
        "python/extension/*",
    ],
}

# Folders of rooms, of which none reaches another.
ROOMS = ["aiter/attention/passes/"]

# No file outside runtime/driver reaches a driver, or a GPU runtime's declarations.
_DRIVERS = ["aiter/runtime/driver/*", "hip/*", "cuda*"]
_DRIVER_FOLDER = "aiter/runtime/driver/*"
_DRIVER_FACE = "aiter/runtime/driver/driver.h"

# C and C++ of the library, its Python extension, the XLA handlers and all kernels of our own.
_ROOMS = ("aiter/", "kernels/", "python/")
_EXTENSIONS = (".c", ".cc", ".cpp", ".h", ".hip", ".hpp")
_TEST = re.compile(r"(^|/)tests/|_(test|fuzz)\.(c|cc|cpp)$")

_INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)
_PROJECT = ("aiter/", "kernels/", "python/", "hip/", "cuda")


def shipped(files: Mapping[str, str]) -> dict[str, str]:
    """Those of the checkout's files that layers are of: shipped ones, without tests."""
    return {
        path: text
        for path, text in files.items()
        if path.startswith(_ROOMS) and path.endswith(_EXTENSIONS) and not _TEST.search(path)
    }


def _matches(name: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _room(path: str) -> str | None:
    """The room that a file is in."""
    for folder in ROOMS:
        room, slash, _ = path.removeprefix(folder).partition("/")
        if path.startswith(folder) and slash:
            return folder + room
    return None


def included(path: str, text: str, files: Mapping[str, str]) -> list[str]:
    """The headers that a source includes; a name that lies beside the source is that file's."""
    folder = path.rpartition("/")[0]
    names = _INCLUDE.findall(text)
    return [f"{folder}/{name}" if f"{folder}/{name}" in files else name for name in names]


def violations(files: Mapping[str, str]) -> list[str]:
    """The violations in files (path -> text), one line each; none where the layers hold."""
    direct = {
        path: [name for name in included(path, text, files) if name.startswith(_PROJECT)]
        for path, text in files.items()
    }
    found = []
    used = set()
    for path in sorted(files):
        layer = next((pattern for pattern in LAYERS if fnmatchcase(path, pattern)), None)
        if layer is None:
            found.append(f"{path} is in no layer: add it to LAYERS in tests/layers/layers.py")
            continue
        used.add(layer)
        # Compiled by HIP's own compiler, or where the caller does so.
        device_code = path.startswith(("kernels/", "aiter/compat/include/"))
        chains = {name: [path, name] for name in direct[path]}
        pending = list(chains)
        while pending:
            name = pending.pop()
            for below in direct.get(name, []):
                if below not in chains:
                    chains[below] = [*chains[name], below]
                    pending.append(below)
        for name, chain in sorted(chains.items()):
            folder = path.rpartition("/")[0]
            allowed = [pattern.format(folder=folder) for pattern in LAYERS[layer]]
            allowed.append(path.rsplit(".", 1)[0] + ".h")
            if device_code and name.startswith("hip/"):
                continue
            in_other_room = _room(path) and _room(name) not in (None, _room(path))
            is_outside = not fnmatchcase(path, _DRIVER_FOLDER) and name != _DRIVER_FACE
            is_driver = is_outside and _matches(name, _DRIVERS)
            if not _matches(name, allowed) or in_other_room or is_driver:
                found.append(f"{' -> '.join(chain)}: {layer} may not include {name}")
    found += [f"LAYERS: no file is in {layer}" for layer in LAYERS if layer not in used]
    return found
