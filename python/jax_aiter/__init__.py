# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""jax-aiter's names, served by aiter-attn: the module of the distribution jax-aiter that is built
here. Its modules are those of aiter_attn.compat.jax_aiter; others are refused by their names."""

import sys

from aiter_attn.compat import jax_aiter as _stand_in

# Python gives whoever imports this module what stands here when it is done.
del sys.modules[__name__]
_stand_in.install()
