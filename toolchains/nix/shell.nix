# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
# `nix develop`: what README.md's commands and the linters need of a machine, and no more. Compilers
# are not among it: ./bazelw brings its own. No variable here reaches an action.
{
  lib,
  bash,
  dpkg,
  gitMinimal,
  glibc,
  mkShellNoCC,
  python3,
  stdenv,
  writeShellScript,
  writeText,
  mirrors,
}:
let
  # Wheels of package indexes expect the system's C++ library where NixOS has none.
  libraries = lib.makeLibraryPath [ stdenv.cc.cc ];
  python = python3.buildEnv.override {
    extraLibs = [ python3.pkgs.pip ];
    makeWrapperArgs = [ "--prefix LD_LIBRARY_PATH : ${libraries}" ];
  };

  # C++ tests are linked for a loader in /lib64, where NixOS has none.
  runTest = writeShellScript "run-test" ''
    IFS= read -r -N 4 start < "$1"
    if [ "$start" = $'\x7fELF' ]; then
      exec ${glibc}/lib/ld-linux-x86-64.so.2 "$@"
    fi
    exec "$@"
  '';
  settings = writeText "bazelrc" ''
    # NixOS has nothing but sh in /bin: tests find bash and its like by the shell's PATH.
    test --test_env=PATH
    test --run_under=${runTest}
    # The shell that genrules of tests run with.
    build --shell_executable=${bash}/bin/bash
  '';
in
mkShellNoCC {
  packages = [
    bash
    dpkg # unpacks the locked Bazel
    gitMinimal
    python
  ];

  # The Bazel that bazelisk downloads expects a system's libraries; the locked Bazel has its own.
  BAZELW_MODE = "debian";
  BAZELW_BAZELRC = settings;
  shellHook = ''
    # No apt is configured here: Debian's mirrors are those that nixpkgs itself uses.
    export AITER_ATTN_DEBIAN_MIRROR="''${AITER_ATTN_DEBIAN_MIRROR:-${
      toString (builtins.filter (lib.hasPrefix "http") mirrors.debian)
    }}"
  '';
}
