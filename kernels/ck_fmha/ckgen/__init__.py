# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""From variant set files to kernel instances of Composable Kernel's fused attention.

directions  upstream's generator, direction by direction, as candidates with traits
pool        all candidates, and upstream's dispatchers over some of them
values      messages about wrong words in a variant set file
schema      a variant set file as selectors
selection   selectors -> candidates
archs       the archs, and the instances that each lacks
emission    candidates -> sources and data files

Standard library only: it runs while repositories are fetched, before anything is built.
"""
