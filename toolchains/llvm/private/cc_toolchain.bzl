# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The cc_toolchain of @llvm and @sysroot."""

# rules_cc has it nowhere else; the toolchains that it configures by itself load it from here, too.
# buildifier: disable=bzl-visibility
load("@rules_cc//cc/private/toolchain:unix_cc_toolchain_config.bzl", "cc_toolchain_config")
load("@rules_cc//cc/toolchains:cc_toolchain.bzl", "cc_toolchain")
load(
    "//toolchains/llvm:paths.bzl",
    "COMPILATION_FOLDER",
    "DRIVER_FLAGS",
    "LINKER",
    "OWN_PREFIX_MAPS",
    "RESOURCES",
    "SYSROOT",
    "prefix_maps",
)
load("//toolchains/versions:llvm.bzl", "LLVM")
load(":compiler_rt.bzl", "COMPILER_RT_RESOURCES")

# Same values as Bazel's own toolchain: the time of a build is no part of its outputs.
_REDACTED_DATES = [
    "-Wno-builtin-macro-redefined",
    "-D__DATE__=\"redacted\"",
    "-D__TIMESTAMP__=\"redacted\"",
    "-D__TIME__=\"redacted\"",
]

# The flags that --features=asan, ubsan or tsan adds to Bazel's own -fsanitize flags, where one is
# set: the three are Bazel's names. Code for the GPU is compiled by another toolchain and does not
# see them.
_SANITIZED = Label("//toolchains/llvm/sanitizers:any.enabled")
_FUZZED = Label("//toolchains/llvm/sanitizers:fuzzer.enabled")

def _if(setting, values, otherwise = []):
    return select({
        setting: values,
        "//conditions:default": otherwise,
    })

def hermetic_cc_toolchain(name):
    """Declares the toolchain in @llvm's root package.

    It has to be there: Bazel takes paths of tools as relative to this package.

    Args:
      name: of the cc_toolchain.
    """
    native.filegroup(name = name + "_nothing")
    native.filegroup(
        name = name + "_compile",
        srcs = [
            ":compiler",
            "@sysroot//:headers",
        ],
    )
    native.filegroup(
        name = name + "_link",
        srcs = [
            ":linker",
            "@sysroot//:libraries",
        ],
    )
    native.filegroup(
        name = name + "_sanitized_link",
        srcs = [
            name + "_link",
            "@compiler_rt//:archives",
        ],
    )
    native.filegroup(
        name = name + "_all",
        srcs = [
            ":archiver",
            ":objcopy",
            name + "_compile",
            name + "_link",
        ],
    )
    cc_toolchain_config(
        name = name + "_config",
        abi_libc_version = "glibc-2.36",
        abi_version = "gcc",
        builtin_sysroot = SYSROOT,
        compile_flags = DRIVER_FLAGS + OWN_PREFIX_MAPS + prefix_maps() + [
            COMPILATION_FOLDER,
            "-Wall",
            "-fno-omit-frame-pointer",
        ] + _if(_FUZZED, ["-fsanitize=fuzzer-no-link"]),
        compiler = "clang",
        cpu = "k8",
        cxx_builtin_include_directories = [
            "%sysroot%/usr/include",
            RESOURCES + "/include",
        ],
        cxx_flags = ["-std=c++17"],
        dbg_compile_flags = ["-g"],
        host_system_name = "x86_64-linux-gnu",
        link_flags = DRIVER_FLAGS + [
            "-fuse-ld=lld",
            "--ld-path=" + LINKER,
            "-static-libgcc",
            "-Wl,-z,relro,-z,now",
            # Else it depends on the distribution that clang takes /etc/os-release for.
            "-Wl,--hash-style=gnu",
            "-Wl,--no-undefined-version",
        ] + _if(_SANITIZED, [
            # Linked by clang, not clang++: the runtime's operator new, and type checks.
            "-fsanitize-link-c++-runtime",
            # compiler-rt's libraries; a link needs nothing else of this folder.
            "-resource-dir=" + COMPILER_RT_RESOURCES,
        ]),
        # @sysroot has libstdc++ as an archive only.
        link_libs = [
            "-lstdc++",
            "-lm",
        ],
        opt_compile_flags = [
            "-O2",
            "-g0",
            "-DNDEBUG",
            "-ffunction-sections",
            "-fdata-sections",
        ] + _if(_SANITIZED, [
            # A third of the time to compile, and more of the functions that a report names.
            "-O1",
            # Reports name files and lines.
            "-gline-tables-only",
            # Indices within a vector's capacity but beyond its size.
            "-D_GLIBCXX_ASSERTIONS",
        ]),
        opt_link_flags = ["-Wl,--gc-sections"],
        supports_start_end_lib = True,
        target_libc = "glibc",
        target_system_name = "x86_64-linux-gnu",
        tool_paths = {
            "ar": "bin/llvm-ar",
            "cpp": "bin/clang",
            "dwp": "bin/no-such-tool",
            "gcc": "bin/clang",
            "gcov": "bin/no-such-tool",
            "ld": "bin/ld.lld",
            "llvm-cov": "bin/no-such-tool",
            "nm": "bin/llvm-nm",
            "objcopy": "bin/llvm-objcopy",
            "objdump": "bin/llvm-objdump",
            "strip": "bin/llvm-strip",
        },
        toolchain_identifier = "llvm-%s-linux-x86_64" % LLVM,
        unfiltered_compile_flags = _REDACTED_DATES,
    )
    cc_toolchain(
        name = name,
        all_files = name + "_all",
        ar_files = ":archiver",
        as_files = name + "_compile",
        compiler_files = name + "_compile",
        dwp_files = name + "_nothing",
        linker_files = _if(
            _SANITIZED,
            name + "_sanitized_link",
            otherwise = name + "_link",
        ),
        objcopy_files = ":objcopy",
        strip_files = ":objcopy",
        supports_param_files = True,
        toolchain_config = name + "_config",
        toolchain_identifier = "llvm-%s-linux-x86_64" % LLVM,
    )
