# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The interface of attention backends of vLLM 0.33.0, as far as a backend and its caller use it:
names, signatures and defaults are vLLM's, the bodies are not."""

__version__ = "0.33.0"
