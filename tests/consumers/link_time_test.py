# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A library of 2,000 instances is linked in seconds, also below a path with a space. Its objects
are those of code_object_library, of a set's few kernels, each many times over."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

from elftools.elf.elffile import ELFFile

from tests.consumers.archives import instances

_INSTANCES = 2000
_MOST_SECONDS = 20  # of processor time: the test may share its machine
_ENTRY = 32  # bytes of an instance in the list of linked_code_objects.h


def test_two_thousand_instances(tmp_path: Path) -> None:
    objects = [o for path in os.environ["ARCHIVES"].split() for o in instances(Path(path))]
    assert len(objects) > 3
    folder = tmp_path / "a folder"
    folder.mkdir()
    paths = []
    for i in range(_INSTANCES):
        paths.append(folder / f"{i}.o")
        paths[-1].write_bytes(objects[i % len(objects)])
    arguments = folder / "arguments"
    arguments.write_text("".join(f'"{path}"\n' for path in paths))
    library = folder / "library.so"

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([os.environ["LINKER"], "-shared", "-o", library, f"@{arguments}"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    size = library.stat().st_size
    print(f"{_INSTANCES} instances, {size} bytes: {seconds:.1f} s of processor time")
    assert seconds < _MOST_SECONDS
    with library.open("rb") as file:
        section = ELFFile(file).get_section_by_name("attn_code_objects")
        assert section["sh_size"] == _INSTANCES * _ENTRY
    assert size > sum(map(len, objects)) * (_INSTANCES // len(objects)) * 0.9
