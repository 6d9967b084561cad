# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Records that are not whole are refused, with the value, the allowed ones and the next step."""

load("@archs//:archs.bzl", "ARCHS")
load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//kernels/archs:repositories.bzl", "problem_of")

_WHOLE = ARCHS["gfx90a"]

def _without(record, key):
    return {name: value for name, value in record.items() if name != key}

# Record -> words of its refusal.
_REFUSED = [
    (None, "not a JSON object of facts; write products, wave_size, fp8, executed, "),
    ([], "not a JSON object of facts"),
    (_WHOLE | {"prodcuts": "M0"}, "unknown fact \"prodcuts\"; known: products, wave_size, "),
    (_without(_WHOLE, "wave_size"), "wave_size is missing; write 32 or 64"),
    (_WHOLE | {"wave_size": 48}, "wave_size is 48; write 32 or 64"),
    (_WHOLE | {"wave_size": "64"}, "wave_size is \"64\"; write 32 or 64"),
    (_WHOLE | {"fp8": "e5m2"}, "fp8 is \"e5m2\"; write \"e4m3\", \"e4m3fnuz\" or \"none\""),
    (_without(_WHOLE, "executed"), "executed is missing; write true or false"),
    (_WHOLE | {"executed": "no"}, "executed is \"no\"; write true or false"),
    (_WHOLE | {"products": ""}, "products is \"\"; write a text"),
    (_WHOLE | {"compute_units": 0}, "compute_units is 0; write a number above 0"),
    (_WHOLE | {"compute_units": True}, "compute_units is true; write a number above 0"),
    (_WHOLE | {"left_out": [{"dtype": "fp8"}]}, "each with a reason, \"because\": \"...\""),
    (_WHOLE | {"left_out": [{"because": ""}]}, "each with a reason, \"because\": \"...\""),
    (_WHOLE | {"left_out": {}}, "left_out is {}; write a list of tables"),
    (_WHOLE | {"compute_unit": {}}, "numbers above 0 for each of simds, waves_per_simd, vgprs, "),
] + [
    (_WHOLE | {"compute_unit": unit}, "numbers above 0 for each of simds, waves_per_simd, vgprs, ")
    for unit in [
        _without(_WHOLE["compute_unit"], "lds_granule"),
        _WHOLE["compute_unit"] | {"smids": 4},
        _WHOLE["compute_unit"] | {"simds": "4"},
        _WHOLE["compute_unit"] | {"simds": 0},
        _WHOLE["compute_unit"] | {"simds": True},
    ]
]

def _records_test_impl(ctx):
    env = unittest.begin(ctx)
    for name, record in ARCHS.items():
        asserts.equals(env, None, problem_of(record), name)
    for record, words in _REFUSED:
        problem = problem_of(record) or ""
        asserts.true(env, words in problem, "%r is not in %r" % (words, problem))
    return unittest.end(env)

_records_test = unittest.make(_records_test_impl)

def records_test(name):
    _records_test(name = name, size = "small")
