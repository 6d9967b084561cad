# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The module registry of the offline Bazel, which MODULE.bazel resolves against.

MODULE.bazel is written for the public registry. Here the same names resolve to the rule sets
that the Debian packages hold, each at one version.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable

from toolchains.locks import toml
from toolchains.locks.errors import LocksError


@dataclasses.dataclass(frozen=True)
class Module:
    version: str
    path: str
    older: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Offline:
    """offline.toml."""

    extra_jars: tuple[str, ...]
    modules: dict[str, Module]
    stubs: dict[str, tuple[str, ...]]


def parse_offline(text: str, where: str) -> Offline:
    """Parses offline.toml. Raises LocksError naming what is wrong in it."""
    try:
        data = toml.loads(text)
        return Offline(
            extra_jars=tuple(data["extra_jars"]),
            modules={
                name: Module(m["version"], m["path"], tuple(m.get("older", ())))
                for name, m in data["module"].items()
            },
            stubs={name: tuple(versions) for name, versions in data["stub"].items()},
        )
    except (
        toml.TomlError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as e:
        raise LocksError(f"{where}: {type(e).__name__}: {e}; restore the file") from e


def rewrite_module(text: str, version: str, versions: dict[str, str]) -> str:
    """Returns a MODULE.bazel with its own version and those of its dependencies replaced."""
    text = re.sub(r'(module\([^)]*?version = )"[^"]*"', rf'\1"{version}"', text, count=1)

    def pinned(m: re.Match[str]) -> str:
        return f'name = "{m[1]}", version = "{versions.get(m[1], m[2])}"'

    return re.sub(r'name = "([a-z0-9_]+)",\s*version = "([^"]+)"', pinned, text)


_BUILDOZER = """\
def _unavailable_impl(rctx):
    rctx.file("BUILD.bazel", "")
    rctx.file("buildozer.exe", "#!/bin/sh\\necho there is no buildozer offline >&2\\nexit 1\\n")

_unavailable = repository_rule(implementation = _unavailable_impl)

buildozer_binary = module_extension(
    implementation = lambda mctx: _unavailable(name = "buildozer_binary"),
)
"""


def files(offline: Offline, module_path: str, read_module: Callable[[str], str]) -> dict[str, str]:
    """Returns path -> text of all files of the registry and of the stubs.

    Paths are relative to the bundle's root: `registry/...`, and stubs below
    `usr/share/bazel/stubs`. `module_path` is the absolute path of usr/share/bazel, which
    modules are relative to; `read_module(path)` reads the MODULE.bazel of the rule set there.
    """
    out = {"registry/bazel_registry.json": json.dumps({"module_base_path": module_path})}
    versions = {name: m.version for name, m in offline.modules.items()}

    def entry(name: str, version: str, text: str, path: str) -> None:
        folder = f"registry/modules/{name}/{version}"
        out[f"{folder}/MODULE.bazel"] = text
        out[f"{folder}/source.json"] = json.dumps({"type": "local_path", "path": path})

    for name, m in offline.modules.items():
        text = rewrite_module(read_module(m.path), m.version, versions)
        entry(name, m.version, text, m.path)
        level = re.search(r"compatibility_level = (\d+)", text)
        for older in m.older:
            declaration = (
                f'module(name = "{name}", version = "{older}", '
                f"compatibility_level = {level[1] if level else 0})\n"
            )
            entry(name, older, declaration, m.path)
    for name, stub_versions in offline.stubs.items():
        folder = f"usr/share/bazel/stubs/{name}"
        out[f"{folder}/MODULE.bazel"] = f'module(name = "{name}")\n'
        out[f"{folder}/BUILD.bazel"] = f"# {name} is not available offline.\n"
        for version in stub_versions:
            text = f'module(name = "{name}", version = "{version}")\n'
            entry(name, version, text, f"stubs/{name}")
    if "buildozer" in offline.stubs:
        # Bazel's own module evaluates this extension; only `bazel mod tidy` uses its result.
        out["usr/share/bazel/stubs/buildozer/buildozer_binary.bzl"] = _BUILDOZER
    return out
