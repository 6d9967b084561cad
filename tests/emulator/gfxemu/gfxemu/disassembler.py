# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Machine code <-> text with llvm-mc, one process per code object.

`llvm-mc -disassemble -show-encoding` prints one line per instruction with its bytes, from which
addresses follow; the same tool assembles the opcode tests' instructions.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
from collections.abc import Iterable

from gfxemu.errors import CodeObjectError, UnsupportedInstruction

_LINE = re.compile(r"^\s*(?P<text>\S.*?)\s*[;/]+ encoding: \[(?P<bytes>[^\]]*)\]")
_ENCODING_SUFFIX = re.compile(r"_(e32|e64|sdwa|dpp)$")
_COMMA = re.compile(r",(?![^\[(]*[\])])")
_SPACE = re.compile(r"\s+(?![^\[(]*[\])])")


class Instruction:
    """One decoded instruction. Modifiers and flags count as handled once a builder asks."""

    __slots__ = ("_asked", "_flags", "_modifiers", "address", "encoding", "index", "name",
                 "operands", "size", "text")  # fmt: skip

    def __init__(self, text: str, address: int, size: int, index: int):
        self.text, self.address, self.size, self.index = text, address, size, index
        mnemonic, _, rest = text.partition(" ")
        match = _ENCODING_SUFFIX.search(mnemonic)
        self.encoding = match[1] if match else ""
        self.name = mnemonic[: match.start()] if match else mnemonic
        operands = [p.strip() for p in _COMMA.split(rest)] if rest.strip() else []
        self._modifiers: dict[str, str] = {}
        self._flags: set[str] = set()
        self._asked: set[str] = set()
        if operands:
            words = _SPACE.split(operands[-1])
            operands[-1] = words[0]
            for word in words[1:]:
                key, colon, value = word.partition(":")
                if colon and "(" not in key:
                    self._modifiers[key] = value
                else:
                    self._flags.add(word)
        self.operands = tuple(operands)

    def __repr__(self) -> str:
        return f"{self.address:#06x}: {self.text}"

    def flag(self, name: str) -> bool:
        self._asked.add(name)
        return name in self._flags

    def flags(self) -> frozenset[str]:
        """All words after the operands (s_waitcnt's counters, cache bits, ...)."""
        self._asked |= self._flags
        return frozenset(self._flags)

    def text_modifier(self, name: str, default: str = "") -> str:
        self._asked.add(name)
        return self._modifiers.get(name, default)

    def int_modifier(self, name: str, default: int = 0) -> int:
        value = self.text_modifier(name)
        return int(value, 0) if value else default

    def bits_modifier(self, name: str, count: int, default: int) -> list[int]:
        """A bit list such as op_sel:[0,1,0]."""
        value = self.text_modifier(name)
        return [int(b) for b in value.strip("[]").split(",")] if value else [default] * count

    def check_all_handled(self) -> None:
        """Raise UnsupportedInstruction if a modifier or flag was never asked for."""
        left = sorted((set(self._modifiers) | self._flags) - self._asked)
        if left:
            raise UnsupportedInstruction(
                f"modifier {', '.join(left)} is not implemented for {self.name}: {self!r}"
            )


@dataclasses.dataclass(frozen=True)
class LlvmMc:
    """llvm-mc at `path`. Raises CodeObjectError with the tool's own message where it fails."""

    path: str

    @staticmethod
    def from_environment() -> LlvmMc:
        """The tool named by GFXEMU_LLVM_MC (Bazel tests set it to the hermetic llvm-mc)."""
        path = os.environ.get("GFXEMU_LLVM_MC", "")
        if not path:
            raise CodeObjectError(
                "GFXEMU_LLVM_MC is not set: name an llvm-mc with the AMDGPU target (LLVM >= 21)"
            )
        return LlvmMc(path)

    def disassemble(self, code: bytes, arch: str, address: int = 0) -> list[Instruction]:
        text = " ".join(f"0x{b:02x}" for b in code)
        out = self._run(arch, ["-disassemble"], text)
        instructions = []
        for words, size in _lines(out):
            instructions.append(Instruction(words, address, size, len(instructions)))
            address += size
        return instructions

    def assemble(self, lines: Iterable[str], arch: str) -> bytes:
        out = self._run(arch, [], "\n".join(lines) + "\n")
        return b"".join(
            bytes(int(b, 16) for b in m["bytes"].split(","))
            for m in map(_LINE.match, out.splitlines())
            if m
        )

    def _run(self, arch: str, arguments: list[str], text: str) -> str:
        command = [self.path, "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-show-encoding"]
        done = subprocess.run(
            [*command, *arguments, "-"], input=text, capture_output=True, text=True, check=False
        )
        if done.returncode or "error:" in done.stderr or "warning:" in done.stderr:
            raise CodeObjectError(f"{self.path} failed: {done.stderr.strip()[:2000]}")
        return done.stdout


def _lines(output: str) -> Iterable[tuple[str, int]]:
    for line in output.splitlines():
        match = _LINE.match(line)
        if match:
            yield " ".join(match["text"].split()), match["bytes"].count(",") + 1
