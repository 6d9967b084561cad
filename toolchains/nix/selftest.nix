# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
# The wheel's own self-test, on nixpkgs' python3 and numpy.
{
  python3,
  runCommand,
  writeShellScriptBin,
  wheel,
}:
let
  interpreter = python3.withPackages (packages: [
    packages.ml-dtypes
    packages.numpy
  ]);
  unpacked = runCommand "aiter-attn-unpacked" { } ''
    ${python3}/bin/python3 -m zipfile -e ${wheel}/*.whl $out
  '';
in
writeShellScriptBin "aiter-attn-selftest" ''
  PYTHONPATH=${unpacked} exec ${interpreter}/bin/python3 -m aiter_attn selftest "$@"
''
