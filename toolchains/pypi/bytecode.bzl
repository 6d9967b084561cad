# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Bytecode in repositories of Python modules: without it each start compiles them."""

def compile_python(rctx, interpreter, folder):
    """Puts bytecode beside the modules of a folder, the same on every machine.

    Args:
      rctx: the repository context.
      interpreter: label of the Python that it is for.
      folder: below the repository's root.
    """
    got = rctx.execute(
        [
            rctx.path(interpreter),
            "-m",
            "compileall",
            "-q",
            "-j0",
            "--invalidation-mode",
            "unchecked-hash",
            folder,
        ],
        environment = {"PYTHONHASHSEED": "0"},
    )
    if got.return_code:
        fail("cannot compile the modules of %s: %s%s" % (rctx.name, got.stdout, got.stderr))
