# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository of the kernel instances that are drawn: draw.py."""

_SEED = "20261120"
_SEED_VARIABLE = "AITER_ATTN_SAMPLE_SEED"

_BUILD = """# Generated. Do not edit.
package(default_visibility = ["//visibility:public"])

exports_files(glob(["instances/*.cpp", "launch/*"]))
"""

def _sample_repository_impl(rctx):
    seed = rctx.getenv(_SEED_VARIABLE, _SEED)
    if not seed.isdigit():
        fail("%s: %r is not a seed: a number of decimal digits." % (_SEED_VARIABLE, seed))
    for source in [rctx.attr.draw] + rctx.attr.generator:
        rctx.watch(source)
    ckgen = rctx.path(rctx.attr.generator[0]).dirname.dirname
    result = rctx.execute(
        [
            rctx.path(rctx.attr.python),
            "-B",
            rctx.path(rctx.attr.draw),
            "--fmha-dir",
            rctx.path(rctx.attr.ck_generator).dirname,
            "--seed",
            seed,
            "--out",
            rctx.path("."),
        ],
        # PYTHON* variables of whoever builds are not the generator's.
        environment = {"PYTHONHOME": "", "PYTHONPATH": str(ckgen), "PYTHONSAFEPATH": ""},
    )
    if result.return_code:
        fail("\n" + result.stderr.strip())
    rctx.file("BUILD.bazel", _BUILD, executable = False)
    rctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % rctx.name, executable = False)

_sample_repository = repository_rule(
    implementation = _sample_repository_impl,
    attrs = {
        "ck_generator": attr.label(mandatory = True, doc = "generate.py of CK's 01_fmha"),
        "draw": attr.label(mandatory = True, doc = "draw.py"),
        "generator": attr.label_list(mandatory = True, doc = "the files of ckgen"),
        "python": attr.label(mandatory = True, doc = "the interpreter that runs draw.py"),
    },
)

def sample_repositories():
    """Declares @ck_fmha_sample: sources of instances, and the host code for their arguments."""
    _sample_repository(
        name = "ck_fmha_sample",
        ck_generator = "@composable_kernel//:example/ck_tile/01_fmha/generate.py",
        draw = Label("//tests/emulation/sample:draw.py"),
        generator = [
            Label("//kernels/ck_fmha:ckgen/%s.py" % module)
            for module in ["__init__", "emission", "pool", "schema", "selection"]
        ],
        python = Label("@python_3_13//:bin/python3"),
    )

def _sample_impl(mctx):
    sample_repositories()
    return mctx.extension_metadata(reproducible = True)

sample = module_extension(
    implementation = _sample_impl,
    doc = "Declares @ck_fmha_sample.",
)
