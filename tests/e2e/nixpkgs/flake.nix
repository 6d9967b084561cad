# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
# Stands in for nixpkgs in tests: see default.nix.
{
  outputs =
    { self }:
    {
      legacyPackages.x86_64-linux = import ./default.nix;
    };
}
