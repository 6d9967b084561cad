# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The providers of this folder's rules."""

HeaderTreeInfo = provider(
    doc = "Headers that device code is compiled against.",
    fields = {
        "digest": "File: sha256 over the headers and their names in the tree",
        "headers": "depset of File",
        "includes": "list of str: include directories, as paths from the execution root",
        "listing": "File: a line for each header, its sha256 and its name in the tree; `digest` " +
                   "is that of this file",
        "root": "str: the repository of the headers, or of most of them, from the execution " +
                "root; \"\" is the main one",
    },
)

CodeObjectRecipeInfo = provider(
    doc = "The part that the compiles of many code objects share, made once for all of them.",
    fields = {
        "arguments": "Args: every flag but the arch and the names of input and output",
        "backend_arguments": "Args: the same for a compile of optimised IR",
        "compiler": "File",
        "families": "of the HIP toolchain: flags and files that archs have in addition",
        "header_tree": "HeaderTreeInfo: that the sources are compiled against",
        "inputs": "depset of File: all but the source",
        "recipe": "File: the same for keys, see code_object/spec.py",
        "repository": "str: where sources must lie, from the execution root",
    },
)

CompileGroupInfo = provider(
    doc = "Instances that were compiled together, up to optimised IR.",
    fields = {
        "arch": "str",
        "modules": "dict: instance -> File, the bitcode of its kernel alone",
        "sources": "list of File: of the members, in order",
    },
)

CodeObjectInfo = provider(
    doc = "One kernel instance compiled for one arch.",
    fields = {
        "arch": "str",
        "chosen": "struct of what a lock has of its options of code generation: `key`, of its " +
                  "own compile without them; and what that is of beside the recipe, as in " +
                  "`proof`; None where the lock has none",
        "code_object": "File: the AMDGPU ELF",
        "compiled": "tuple of File, the first outputs of the actions that compile it: itself, " +
                    "and that of its compile group; none of what nobody here compiles",
        "instance": "str",
        "metadata": "File: JSON, beside the code object; see code_object/describe.py",
        "proof": "struct of what a lock has of a kernel that is compiled in a group: `key`, of " +
                 "its own compile; and what this is of beside the recipe: `source`, a File, " +
                 "and `flags`; None where there is no proof",
        "recipe": "File: that of CodeObjectRecipeInfo or CubinRecipeInfo that it was made by",
        "spec": "File: how the code object is made; its sha256 is the key",
        "kit": "struct, what else makes it by the spec alone: `source`, a File; `flags`, those " +
               "that the recipe lacks; `header_tree`, a HeaderTreeInfo; `proven`, a tuple of " +
               "the key and the sha256 that a lock has of its own compile, or of nothing; and " +
               "`inputs`, a depset of File, the compiler among them; None where that is not " +
               "clang",
    },
)

CodeObjectsInfo = provider(
    doc = "Code objects that are shipped together.",
    fields = {"code_objects": "depset of CodeObjectInfo"},
)

CompileKitInfo = provider(
    doc = "A compile kit: aiter/runtime/kit/kit.h.",
    fields = {"files": "dict: path in the kit -> File"},
)

HipRtcHeadersInfo = provider(
    doc = "The headers that hipRTC needs beside those of a kernel.",
    fields = {
        "folder": "File: a folder with them by their names",
        "listing": "File: as HeaderTreeInfo has it",
    },
)

PackFilesInfo = provider(
    doc = "Code objects in files for the library to find.",
    fields = {
        "files": "dict: distribution -> struct(arch: str, file: File)",
        "variant_set": "str",
    },
)
