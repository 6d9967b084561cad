# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The facts of a machine that `aiter-attn doctor` judges, as Linux tells them."""

from __future__ import annotations

import grp
import os
import pwd
import re
import stat
from collections.abc import Mapping
from pathlib import Path

__all__ = ["KFD", "Machine"]

KFD = "/dev/kfd"
_AMD = "0x1002"
# PCI classes of displays and of processing accelerators.
_GPU_CLASSES = ("0x03", "0x12")
# Files that Docker, Podman and Apptainer put into each container; Kubernetes sets a variable.
_CONTAINER_FILES = (".dockerenv", "run/.containerenv", ".singularity.d")
_CONTAINER_VARIABLE = "KUBERNETES_SERVICE_HOST"


class Machine:
    """This machine; or the one whose file system lies below another root."""

    def __init__(self, root: Path = Path("/"), environ: Mapping[str, str] = os.environ) -> None:
        self.root = root
        self.environ = environ

    def at(self, path: str) -> Path:
        """A path of the machine's, below its root."""
        return self.root / path.lstrip("/")

    def user(self) -> str:
        try:
            return pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            return str(os.geteuid())

    def may_write(self, path: str) -> bool:
        """Whether this process may open a file to read and to write; a folder, to add to it."""
        folder = os.X_OK if self.at(path).is_dir() else 0
        return os.access(self.at(path), os.R_OK | os.W_OK | folder)

    def is_private(self, path: str) -> bool:
        """Whether the library takes kernels from a folder (aiter/runtime/store/file.h)."""
        status = self.at(path).stat()
        open_to_others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        sticky = status.st_mode & stat.S_ISVTX
        return status.st_uid in (0, os.geteuid()) and (not open_to_others or bool(sticky))

    def owner(self, path: str) -> str:
        """The group of a file, and its mode."""
        status = self.at(path).stat()
        try:
            group = grp.getgrgid(status.st_gid).gr_name
        except KeyError:
            group = str(status.st_gid)
        return f"group {group}, mode {stat.S_IMODE(status.st_mode):04o}"

    def group_of(self, path: str) -> str:
        """The group that may open a device node, by its name or its number."""
        return self.owner(path).removeprefix("group ").partition(",")[0]

    def is_container(self) -> bool:
        files = any(self.at(file).exists() for file in _CONTAINER_FILES)
        return files or _CONTAINER_VARIABLE in self.environ

    def archs_of_kernel(self) -> list[str]:
        """The archs of the GPUs that the kernel's amdgpu driver serves."""
        found = []
        for file in sorted(self.at("/sys/class/kfd/kfd/topology/nodes").glob("*/properties")):
            match = re.search(r"^gfx_target_version (\d+)$", _text(file), re.MULTILINE)
            # A CPU is a node, too, of version 0.
            if match and int(match[1]):
                found.append(_gfx_name(int(match[1])))
        return found

    def gpus_on_bus(self) -> int:
        """The number of AMD's GPUs on the PCI bus, with a driver or without."""
        return sum(
            _text(device / "vendor").strip() == _AMD
            and _text(device / "class").startswith(_GPU_CLASSES)
            for device in self.at("/sys/bus/pci/devices").glob("*")
        )

    def nodes(self) -> list[str]:
        """The device nodes that are there and that HIP opens."""
        paths = [KFD] if self.at(KFD).exists() else []
        names = sorted(file.name for file in self.at("/dev/dri").glob("renderD*"))
        return paths + [f"/dev/dri/{name}" for name in names]

    def runtime_version(self, library: str) -> tuple[int, int] | None:
        """The version of a HIP runtime, which its file has at the end of its name."""
        file = os.path.realpath(self.at(library))
        match = re.search(r"libamdhip64\.so\.(\d+)\.(\d+)", file)
        return (int(match[1]), int(match[2])) if match else None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _gfx_name(version: int) -> str:
    """90402 -> gfx942, 90010 -> gfx90a."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
