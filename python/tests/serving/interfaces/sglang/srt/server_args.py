# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Of sglang/srt/server_args.py."""

ATTENTION_BACKEND_CHOICES = ["triton", "torch_native", "aiter"]
add_attention_backend_choices = ATTENTION_BACKEND_CHOICES.extend
