# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
# The wheel for nixpkgs' python3, as a folder with one .whl: the same bytes as ./bazelw gives.
{
  lib,
  callPackage,
  dpkg,
  python3,
  stdenvNoCC,
  src,
  variants,
}:
let
  python = builtins.replaceStrings [ "." ] [ "" ] python3.pythonVersion;
  version = builtins.head (
    builtins.match ".*\nVERSION = \"([^\"]*)\".*" (builtins.readFile ../../aiter/version.bzl)
  );
in
stdenvNoCC.mkDerivation {
  pname = "aiter-attn-${variants}";
  inherit src version;
  nativeBuildInputs = [
    dpkg
    python3
  ];

  AITER_ATTN_MIRROR = callPackage ./locked.nix { inherit python; };
  AITER_ATTN_STRICT = "1";
  BAZELW_MODE = "debian";

  dontConfigure = true;
  # Nix's sandbox stands in for Bazel's: the kernel allows no second one inside.
  buildPhase = ''
    export HOME=$NIX_BUILD_TOP/home BAZELW_CACHE=$NIX_BUILD_TOP/bazelw
    mkdir -p "$HOME"
    bazel() {
      python3 bazelw --output_user_root="$NIX_BUILD_TOP/bazel" "$@"
    }
    bazel build --spawn_strategy=local --jobs="$NIX_BUILD_CORES" --color=no --curses=no \
      --//kernels:variants=${variants} --//toolchains/python:abi=cp${python} //python:attn_wheel
    mkdir -p "$out"
    cp bazel-bin/python/*.whl "$out"
    bazel shutdown
  '';
  dontInstall = true;
  # The wheel is finished: nothing may strip or patch it.
  dontFixup = true;

  meta = {
    description = "Fused attention for AMD GPUs, as a Python wheel";
    license = lib.licenses.asl20;
    platforms = [ "x86_64-linux" ];
  };
}
