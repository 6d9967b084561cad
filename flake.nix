# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
# For Nix: toolchains/nix/README.md. The materials of the wheel come from the same locks as in every
# other build; of nixpkgs there are only programs that fetch, unpack and start things.
{
  description = "Fused attention for AMD GPUs, as a Python wheel and a C/C++ library";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-25.11";

  outputs =
    { self, nixpkgs }:
    let
      system = "x86_64-linux"; # the only one that the locked compilers run on
      pkgs = nixpkgs.legacyPackages.${system};
      wheel =
        variants:
        pkgs.callPackage ./toolchains/nix/wheel.nix {
          inherit variants;
          src = self;
        };
      selftest = wheel: pkgs.callPackage ./toolchains/nix/selftest.nix { inherit wheel; };
      core = wheel "core";
      smoke = wheel "smoke";
    in
    {
      packages.${system} = {
        default = core;
        inherit core smoke;
        selftest = selftest core;
      };
      apps.${system} = rec {
        default = selftest;
        selftest = {
          type = "app";
          program = "${self.packages.${system}.selftest}/bin/aiter-attn-selftest";
          meta.description = "The wheel computes right on the CPU: forward and backward";
        };
      };
      checks.${system}.selftest = pkgs.runCommand "aiter-attn-selftest-smoke" { } ''
        ${selftest smoke}/bin/aiter-attn-selftest > $out
      '';
      devShells.${system}.default = pkgs.callPackage ./toolchains/nix/shell.nix {
        # Its list names Debian's mirrors, so that nothing here has to.
        mirrors = import "${nixpkgs}/pkgs/build-support/fetchurl/mirrors.nix";
      };
      formatter.${system} = pkgs.nixfmt-tree;
    };
}
