# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the environment of a py_tool's action."""

import json
import os
import sys

import elftools
import msgpack

from toolchains.python.tests import tool_module

with open(sys.argv[1], "w", encoding="utf-8") as report:
    json.dump(
        {
            "arguments": sys.argv[2:],
            "flags": {"safe_path": sys.flags.safe_path, "no_site": sys.flags.no_site},
            "hash": hash("the same in every run"),
            "libraries": [elftools.__name__, msgpack.unpackb(msgpack.packb("msgpack"))],
            "module": tool_module.NAME,
            "folder": os.getcwd(),
            "path": sys.path,
            "prefix": sys.prefix,
            "version": list(sys.version_info[:2]),
        },
        report,
    )
