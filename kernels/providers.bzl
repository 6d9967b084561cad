# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""What the rules of this folder tell each other."""

HeaderTreeInfo = provider(
    doc = "Headers that device code is compiled against.",
    fields = {
        "digest": "File: sha256 over the headers and their names in the tree",
        "headers": "depset of File",
        "includes": "list of str: include directories, as paths from the execution root",
        "root": "str: the headers' repository, from the execution root; \"\" is the main one",
    },
)

CodeObjectInfo = provider(
    doc = "One kernel instance compiled for one architecture.",
    fields = {
        "arch": "str",
        "code_object": "File: the AMDGPU ELF",
        "data_symbol": "str: C name of the embedded bytes",
        "instance": "str",
        "key": "File: the content key, 64 hex digits",
        "metadata": "File: JSON, see private/metadata.py",
        "packed": "File: one zstd frame",
    },
)

CodeObjectsInfo = provider(
    doc = "Code objects that are shipped together.",
    fields = {"code_objects": "depset of CodeObjectInfo"},
)
