# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The rules that make, describe, embed and list code objects.

header_tree -> code_object_recipe -> code_object -> code_object_group -> embedded_pack, launch_table
                                                    code_object_group -> pack_files, kpacks
                                                    code_object_group -> compile_kit, kernel_sources
                                    code_object -> code_object_library
code_object_files: those of others, by their files' names
header_tree -> cubin_recipe -> cubin -> code_object_group -> ahead_of_time
"""

load("//kernels/private:ahead_of_time.bzl", _ahead_of_time = "ahead_of_time")
load("//kernels/private:chosen_archs.bzl", _chosen_archs = "chosen_archs")
load(
    "//kernels/private:code_object.bzl",
    _code_object = "code_object",
    _code_object_group = "code_object_group",
    _code_object_recipe = "code_object_recipe",
)
load("//kernels/private:code_object_files.bzl", _code_object_files = "code_object_files")
load(
    "//kernels/private:code_object_library.bzl",
    _code_object_library = "code_object_library",
)
load("//kernels/private:compile_group.bzl", _compile_group = "compile_group")
load("//kernels/private:compile_kit.bzl", _compile_kit = "compile_kit")
load(
    "//kernels/private:cubin.bzl",
    _cubin = "cubin",
    _cubin_recipe = "cubin_recipe",
)
load("//kernels/private:embedded_pack.bzl", _embedded_pack = "embedded_pack")
load(
    "//kernels/private:flags.bzl",
    _ArchsInfo = "ArchsInfo",
    _VariantSetInfo = "VariantSetInfo",
)
load("//kernels/private:header_tree.bzl", _header_tree = "header_tree")
load("//kernels/private:hip_host_library.bzl", _hip_host_library = "hip_host_library")
load("//kernels/private:hiprtc_headers.bzl", _hiprtc_headers = "hiprtc_headers")
load("//kernels/private:kernel_sources.bzl", _kernel_sources = "kernel_sources")
load("//kernels/private:kpacks.bzl", _kpacks = "kpacks")
load("//kernels/private:launch_table.bzl", _launch_table = "launch_table")
load("//kernels/private:own_kernels.bzl", _own_kernels = "own_kernels")
load("//kernels/private:pack_files.bzl", _pack_files = "pack_files")
load(
    "//kernels/private:providers.bzl",
    _CodeObjectInfo = "CodeObjectInfo",
    _CodeObjectsInfo = "CodeObjectsInfo",
    _CompileKitInfo = "CompileKitInfo",
    _PackFilesInfo = "PackFilesInfo",
)

ArchsInfo = _ArchsInfo
CodeObjectInfo = _CodeObjectInfo
CodeObjectsInfo = _CodeObjectsInfo
CompileKitInfo = _CompileKitInfo
PackFilesInfo = _PackFilesInfo
VariantSetInfo = _VariantSetInfo
ahead_of_time = _ahead_of_time
chosen_archs = _chosen_archs
code_object = _code_object
code_object_files = _code_object_files
code_object_group = _code_object_group
code_object_library = _code_object_library
code_object_recipe = _code_object_recipe
compile_group = _compile_group
compile_kit = _compile_kit
cubin = _cubin
cubin_recipe = _cubin_recipe
embedded_pack = _embedded_pack
header_tree = _header_tree
hip_host_library = _hip_host_library
hiprtc_headers = _hiprtc_headers
kernel_sources = _kernel_sources
kpacks = _kpacks
launch_table = _launch_table
own_kernels = _own_kernels
pack_files = _pack_files
