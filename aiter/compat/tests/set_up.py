# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The fields of a struct in a header, by the rules of TransformerEngine's set-up.

It stops where the header has a field that its own sources do not set, or lacks one that they set.
"""

from __future__ import annotations

import re

_COMMENT = re.compile(r"//.*")
# The last word of a declaration: `TYPE NAME`, or `TYPE NAME = VALUE`.
_NAME = re.compile(r"(\w+)\s*(?:=.*)?$", re.DOTALL)


def declarations(header: str, struct: str) -> list[str]:
    """The statements of the struct, in order, without comments, with single spaces."""
    body: list[str] = []
    inside = False
    for line in header.splitlines():
        if line.strip() == f"struct {struct}":
            inside = True
        elif inside and line.strip() == "};":
            break
        elif inside:
            body.append(_COMMENT.sub("", line))
    else:
        raise ValueError(f"no struct {struct} that ends with a line of its own: }};")
    statements = " ".join(body).strip().removeprefix("{").split(";")
    return [" ".join(statement.split()) for statement in statements if statement.strip()]


def field_names(header: str, struct: str) -> list[str]:
    """The names that set-up sees, in order: none of a declaration that ends with {}."""
    found = [_NAME.search(declaration) for declaration in declarations(header, struct)]
    return [match[1] for match in found if match]
