# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository of the kernel instances that are drawn: draw.py."""

load("//kernels/ck_fmha:repositories.bzl", "generate", "write_set_build")

# The draw whose findings known_findings.json lists.
DEFAULT_SEED = "20261120"
DEFAULT_DRAW = "small"

_SEED_VARIABLE = "AITER_ATTN_SAMPLE_SEED"
_DRAW_VARIABLE = "AITER_ATTN_SAMPLE_DRAW"
_DRAWS = ["small", "large", "standard"]

_STANDARD = Label("//kernels/variants:standard.toml")

def _sample_repository_impl(rctx):
    seed = rctx.getenv(_SEED_VARIABLE, DEFAULT_SEED)
    if not seed.isdigit():
        fail("%s: %r is not a seed: a number of decimal digits." % (_SEED_VARIABLE, seed))
    draw = rctx.getenv(_DRAW_VARIABLE, DEFAULT_DRAW)
    if draw not in _DRAWS:
        fail("%s: %r is not a draw: one of %s." % (_DRAW_VARIABLE, draw, ", ".join(_DRAWS)))
    rctx.watch(rctx.attr.draw)
    rctx.watch(_STANDARD)
    generate(
        rctx,
        [
            "--pool",
            rctx.path(rctx.attr.pool),
            "--standard",
            rctx.path(_STANDARD),
            "--seed",
            seed,
            "--draw",
            draw,
        ],
        program = rctx.attr.draw,
    )
    write_set_build(rctx, "the sample", testonly = True)

_sample_repository = repository_rule(
    implementation = _sample_repository_impl,
    attrs = {
        "draw": attr.label(mandatory = True, doc = "draw.py"),
        "pool": attr.label(mandatory = True, doc = "pool.json of the pool's repository"),
    },
)

def sample_repositories():
    """Declares @ck_fmha_sample, a variant set's repository of instances that are drawn."""
    _sample_repository(
        name = "ck_fmha_sample",
        draw = Label("//tests/emulation/sample:draw.py"),
        pool = "@ck_fmha//:pool.json",
    )

def _sample_impl(mctx):
    sample_repositories()
    return mctx.extension_metadata(reproducible = True)

sample = module_extension(
    implementation = _sample_impl,
    doc = "Declares @ck_fmha_sample.",
)
