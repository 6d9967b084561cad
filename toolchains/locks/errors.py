# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""What goes wrong with locks and with the files that they name."""


class LocksError(Exception):
    """A lock or a locked file cannot be used.

    The message names the value, where it was looked for and the next step.
    """
