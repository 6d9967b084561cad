# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repositories made of locked Python distributions; requirements.toml has the versions."""

load("@python//:trees.bzl", "TOOLS_INTERPRETER", "TREES")
load("//toolchains/versions:abis.bzl", "ABIS", "DEFAULT_ABI")
load(":pypi.bzl", "pypi_archive", "pypi_choice", "pypi_environment")

# The folder is one input of a test and one link in its runfiles, instead of a thousand.
_WHEEL_BUILD = """load("@rules_python//python:defs.bzl", "py_library")

py_library(
    name = "{target}",
    data = ["site-packages"],
    imports = ["site-packages"],
    visibility = ["//visibility:public"],
    deps = {deps},
)
"""

# Of programs of actions, and where rules look for a file: each file is an input.
_FILES_BUILD = """load("@rules_python//python:defs.bzl", "py_library")

py_library(
    name = "{target}",
    srcs = glob(["site-packages/**/*.py"]),
    data = glob(
        ["site-packages/**/*"],
        exclude = ["site-packages/**/*.py"],
    ),
    imports = ["site-packages"],
    visibility = ["//visibility:public"],
    deps = {deps},
)
"""

_PYBIND11_BUILD = """load("@rules_cc//cc:defs.bzl", "cc_library")

filegroup(
    name = "licence",
    srcs = ["dist-info/licenses/LICENSE"],
    visibility = ["//visibility:public"],
)

cc_library(
    name = "pybind11",
    hdrs = glob(["pybind11/include/**/*.h"]),
    includes = ["pybind11/include"],
    visibility = ["//visibility:public"],
)
"""

# One thread and C only: the decoder's bytes do not depend on either, and its object needs
# neither an assembler nor pthread.
_MONOCYPHER_BUILD = """load("@rules_cc//cc:defs.bzl", "cc_library")

filegroup(
    name = "licence",
    srcs = ["LICENSE.txt"],
    visibility = ["//visibility:public"],
)

cc_library(
    name = "monocypher",
    srcs = ["monocypher.c"],
    hdrs = ["monocypher.h"],
    # Hidden in what it is linked into.
    copts = [
        "-fvisibility=hidden",
        "-w",
    ],
    includes = ["."],
    visibility = ["//visibility:public"],
)
"""

_ZSTD_BUILD = """load("@rules_cc//cc:defs.bzl", "cc_library")

filegroup(
    name = "licence",
    srcs = ["zstd/LICENSE"],
    visibility = ["//visibility:public"],
)

cc_library(
    name = "zstd",
    srcs = ["zstd/zstd.c"],
    hdrs = [
        "zstd/zdict.h",
        "zstd/zstd.h",
        "zstd/zstd_errors.h",
    ],
    # Hidden in what it is linked into: zstd.h would export its functions.
    copts = [
        "-fvisibility=hidden",
        "-w",
    ],
    # One thread, and tested upstream: not worth the minutes that each takes to compile. Reads out
    # of bounds are this project's, if it passes a wrong size.
    features = [
        "-tsan",
        "-ubsan",
    ],
    includes = ["zstd"],
    linkstatic = True,
    local_defines = [
        "ZDICTLIB_VISIBLE=",
        "ZSTDERRORLIB_VISIBLE=",
        "ZSTDLIB_VISIBLE=",
        "ZSTD_DISABLE_ASM",
    ],
    visibility = ["//visibility:public"],
)
"""

# `file` is NVRTC; `library` has what it loads, too. The wheel's .alt libraries have other limits.
_NVRTC_BUILD = """load("@rules_cc//cc:defs.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

alias(
    name = "file",
    actual = "nvidia/cu13/lib/libnvrtc.so.13",
)

filegroup(
    name = "library",
    srcs = glob(
        ["nvidia/cu13/lib/*.so.*"],
        exclude = ["**/*.alt.so.*"],
    ),
)

cc_library(
    name = "header",
    hdrs = ["nvidia/cu13/include/nvrtc.h"],
    includes = ["nvidia/cu13/include"],
)
"""

_CUDA_DRIVER_BUILD = """load("@rules_cc//cc:defs.bzl", "cc_library")

cc_library(
    name = "header",
    hdrs = ["nvidia/cu13/include/cuda.h"],
    includes = ["nvidia/cu13/include"],
    visibility = ["//visibility:public"],
)
"""

# libcurl, and the libraries beside it that it loads.
_CURL_BUILD = """package(default_visibility = ["//visibility:public"])

filegroup(
    name = "file",
    srcs = glob(["pycurl.libs/libcurl-*.so.4.*"]),
)

filegroup(
    name = "library",
    srcs = glob(["pycurl.libs/*"]),
)
"""

_CMAKE_BUILD = """exports_files(["cmake/data/bin/cmake"])

filegroup(
    name = "cmake",
    srcs = glob(["cmake/data/**"]),
    visibility = ["//visibility:public"],
)
"""

_XLA_FFI_BUILD = """load("@rules_cc//cc:defs.bzl", "cc_library")

cc_library(
    name = "headers",
    hdrs = glob(["jaxlib/include/xla/ffi/api/*.h"]),
    includes = ["jaxlib/include"],
    visibility = ["//visibility:public"],
)
"""

# A program that comes in a wheel.
_PROGRAM_BUILD = """filegroup(
    name = "{name}",
    srcs = glob(["{path}"]),
    visibility = ["//visibility:public"],
)
"""

def _interpreter(abi):
    return TREES["python_3_" + abi.removeprefix("cp3")].relative(":bin/python3")

def _wheel(name, distribution, kind, target, deps, build = _WHEEL_BUILD, bytecode_of = None):
    if bytecode_of == None:
        # Tests with torch run on the Python of tools.
        bytecode_of = [_interpreter(kind)] if kind in ABIS else [
            _interpreter(DEFAULT_ABI),
            TOOLS_INTERPRETER,
        ]
    pypi_archive(
        name = name,
        build_file_content = build.format(
            target = target,
            deps = json.encode(["@pypi_%s" % d.replace("-", "_") for d in deps]),
        ),
        bytecode_of = bytecode_of,
        distribution = distribution,
        kind = kind,
        output = "site-packages",
    )

def _program(name, distribution, path):
    pypi_archive(
        name = name,
        build_file_content = _PROGRAM_BUILD.format(name = name, path = path),
        distribution = distribution,
        kind = "any",
    )

def _pure(distribution, deps = [], **kwargs):
    name = "pypi_" + distribution.replace("-", "_")
    _wheel(name, distribution, "any", name, deps, **kwargs)

def _compiled(distribution, deps = [], locked_as = None, **kwargs):
    name = "pypi_" + distribution.replace("-", "_")
    for abi in ABIS:
        _wheel("%s_%s" % (name, abi), locked_as or distribution, abi, name, deps, **kwargs)
    pypi_choice(
        name = name,
        settings = {abi: str(Label("//toolchains/python:%s.selected" % abi)) for abi in ABIS},
        target = name,
        targets = {abi: "@%s_%s//:%s" % (name, abi, name) for abi in ABIS},
    )

def pypi_repositories():
    """Declares the repositories that are made of Python distributions.

    @pybind11, @monocypher, @zstd, @curl, @cmake, @nvrtc, @cuda_driver, @xla_ffi, programs of lint
    and benches, for tests
    @pypi_NAME (a py_library), and environments of all wheels of a kind: @pypi_tools, @pypi_site.
    """
    pypi_archive(
        name = "pybind11",
        build_file_content = _PYBIND11_BUILD,
        dist_info = True,
        distribution = "pybind11",
        include = ["pybind11/include"],
        kind = "any",
    )
    pypi_archive(
        name = "monocypher",
        build_file_content = _MONOCYPHER_BUILD,
        distribution = "pymonocypher",
        kind = "sdist",
    )
    pypi_archive(
        name = "zstd",
        build_file_content = _ZSTD_BUILD,
        distribution = "zstandard",
        include = ["zstd"],
        kind = "sdist",
    )
    pypi_archive(
        name = "curl",
        build_file_content = _CURL_BUILD,
        distribution = "pycurl",
        include = ["pycurl.libs"],
        kind = "tools",
    )
    pypi_archive(
        name = "cmake",
        build_file_content = _CMAKE_BUILD,
        distribution = "cmake",
        include = ["cmake/data"],
        kind = "any",
    )
    pypi_archive(
        name = "xla_ffi",
        build_file_content = _XLA_FFI_BUILD,
        distribution = "jaxlib@oldest",
        include = ["jaxlib/include/xla/ffi/api"],
        kind = "cp311",
    )
    pypi_archive(
        name = "cuda_driver",
        build_file_content = _CUDA_DRIVER_BUILD,
        distribution = "nvidia-cuda-runtime",
        include = ["nvidia/cu13/include"],
        kind = "any",
    )
    pypi_archive(
        name = "nvrtc",
        build_file_content = _NVRTC_BUILD,
        distribution = "nvidia-cuda-nvrtc",
        include = ["nvidia/cu13"],
        kind = "any",
    )
    pypi_environment(
        name = "pypi_site",
        kind = "site",
        target = "pypi_site",
    )
    pypi_environment(
        name = "pypi_tools",
        kind = "tools",
        target = "pypi_tools",
        # Descriptions of all services of a cloud: most of the files.
        unused = ["botocore/data"],
    )

    # Programs of actions import these, thousands of times.
    _pure("absl-py", build = _FILES_BUILD, bytecode_of = [TOOLS_INTERPRETER])
    _pure("pyelftools", build = _FILES_BUILD, bytecode_of = [TOOLS_INTERPRETER])
    _compiled("msgpack", build = _FILES_BUILD, bytecode_of = [])

    _pure("iniconfig")
    _pure("packaging")
    _pure("pip")
    _pure("pluggy")
    _pure("pygments")
    _pure("pytest", ["iniconfig", "packaging", "pluggy", "pygments"])
    _pure("sortedcontainers")
    _compiled("hypothesis", ["sortedcontainers"])
    _compiled("numpy")
    _compiled("ml-dtypes", ["numpy"])
    _pure("jax", ["jaxlib", "ml-dtypes", "numpy", "opt-einsum", "scipy"])
    _compiled("jaxlib", ["ml-dtypes", "numpy", "scipy"])

    _pure("flatbuffers")
    _pure("flax", [
        "jax",
        "msgpack",
        "optax",
        "pyyaml",
        "rich",
        "treescope",
        "typing-extensions",
    ])
    _pure("optax", ["absl-py", "jax", "numpy"])
    _pure("rich", ["pygments"])
    _pure("treescope", ["numpy"])

    # For the Python that torch is locked for.
    for name in ["pillow", "regex", "safetensors", "tokenizers"]:
        _wheel("pypi_" + name, name, "cp313", "pypi_" + name, [])
    _pure("anyio", ["idna", "typing-extensions"])
    _pure("filelock")
    _pure("h11")
    _pure("httpcore2", ["anyio", "h11", "truststore"])
    _pure("httpx2", ["anyio", "httpcore2", "idna"])
    _pure("huggingface-hub", [
        "filelock",
        "httpx2",
        "packaging",
        "pyyaml",
        "tqdm",
        "typing-extensions",
    ])
    _pure("tqdm")
    _pure("transformers", ["huggingface-hub", "numpy", "regex", "safetensors", "tokenizers"])
    _pure("truststore")
    _pure("diffusers", [
        "filelock",
        "huggingface-hub",
        "importlib-metadata",
        "numpy",
        "pillow",
        "regex",
        "requests",
        "safetensors",
    ])
    _pure("importlib-metadata", ["zipp"])
    _pure("zipp")

    # For torch's wheel, and for its Python: toolchains/torch.
    _pure("fsspec")
    _pure("jinja2", ["markupsafe"])
    _wheel("pypi_markupsafe", "markupsafe", "cp311", "pypi_markupsafe", [])
    _pure("mpmath")
    _pure("networkx")
    _pure("sympy", ["mpmath"])

    # For a measurement.
    pypi_archive(
        name = "pypi_flash_attn",
        build_file_content = _WHEEL_BUILD.format(target = "pypi_flash_attn", deps = "[]"),
        distribution = "flash-attn",
        include = ["flash_attn"],
        kind = "sdist",
        output = "site-packages",
    )

    # For one ABI.
    needs = ["ml-dtypes", "numpy", "opt-einsum", "scipy"]
    _wheel("pypi_jaxlib_oldest", "jaxlib@oldest", "cp311", "pypi_jaxlib_oldest", needs)
    _wheel("pypi_jax_oldest", "jax@oldest", "any", "pypi_jax_oldest", ["jaxlib-oldest"])

    # Actions read some of their files.
    _pure("jax-rocm7-pjrt", ["jax"], build = _FILES_BUILD)
    _compiled("jax-rocm7-plugin", ["jax-rocm7-pjrt"], build = _FILES_BUILD)
    _pure("hip-python", ["rocm-bindings-hip"])
    _compiled("rocm-bindings-hip", ["rocm-bindings-core"])
    _compiled("rocm-bindings-core")
    _pure("opt-einsum")
    _compiled("scipy", ["numpy"])
    _pure("mypy", ["mypy-extensions", "pathspec", "typing-extensions"])
    _pure("mypy-extensions")
    _pure("pathspec")
    _pure("typing-extensions")
    _pure("cyclonedx-python-lib", [
        "license-expression",
        "packageurl-python",
        "py-serializable",
        "sortedcontainers",
        "typing-extensions",
    ])
    _pure("boolean-py")
    _pure("defusedxml")
    _pure("license-expression", ["boolean-py"])
    _pure("packageurl-python")
    _pure("py-serializable", ["defusedxml"])
    _pure("requests", ["certifi", "charset-normalizer", "idna", "urllib3"])
    _pure("certifi")
    _pure("charset-normalizer")
    _pure("idna")
    _pure("urllib3")
    _pure("jsonschema", ["attrs", "jsonschema-specifications", "referencing", "rpds-py"])
    _pure("attrs")
    _pure("jsonschema-specifications", ["referencing"])
    _pure("referencing", ["attrs", "rpds-py", "typing-extensions"])
    _compiled("rpds-py")
    _compiled("pyyaml")
    _pure("check-jsonschema")
    _compiled("brotli")
    _compiled("zstandard", locked_as = "zstandard@wheels")
    _program("clang_format", "clang-format", "clang_format/data/bin/clang-format")
    _program("ninja", "ninja", "*.data/scripts/ninja")
    _program("ruff", "ruff", "*.data/scripts/ruff")
    _program("uv", "uv", "*.data/scripts/uv")
