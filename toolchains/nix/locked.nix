# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
# The locked files that the wheel is built from, in one folder, each named by its sha256: what
# AITER_ATTN_MIRROR takes. Versions, paths and digests are those of the locks that Bazel reads.
{
  lib,
  fetchPypi,
  fetchurl,
  linkFarm,
  python, # the ABI that the wheel is for: "313"
}:
let
  # A file that is missing here stops the build, and the message names it.
  groups = [
    "bazel"
    "dlpack"
    "llvm"
    "python${python}"
    "python313" # what programs of actions run on
    "rocm"
    "sysroot"
  ];
  distributions = {
    absl-py = "any";
    amd-aiter = "any"; # Composable Kernel, and AITER's objects
    boolean-py = "any";
    cyclonedx-python-lib = "any";
    defusedxml = "any";
    "jaxlib@oldest" = "cp311";
    license-expression = "any";
    msgpack = "cp313";
    packageurl-python = "any";
    py-serializable = "any";
    pybind11 = "any";
    pyelftools = "any";
    sortedcontainers = "any";
    typing-extensions = "any";
    zstandard = "sdist";
  };

  lock = kind: builtins.fromJSON (builtins.readFile (../. + "/${kind}/lock.json"));
  debian = (lock "debian").groups;
  pypi = (lock "pypi").distributions;

  fetchDebian =
    package:
    fetchurl {
      name = "${package.name}.deb";
      url = "mirror://debian/${package.path}";
      inherit (package) sha256;
    };

  # NAME-VERSION-PYTHON-ABI-PLATFORM.whl or NAME-VERSION.tar.gz
  fetchDistribution =
    name: kind:
    let
      inherit (pypi.${name}) files version;
      inherit (files.${kind}) filename sha256;
      parts = lib.splitString "-" (lib.removeSuffix ".whl" filename);
      part = builtins.elemAt parts;
    in
    fetchPypi (
      {
        pname = part 0;
        inherit sha256 version;
      }
      // lib.optionalAttrs (kind != "sdist") {
        format = "wheel";
        dist = part 2;
        python = part 2;
        abi = part 3;
        platform = part 4;
      }
    );

  named = sha256: path: {
    name = sha256;
    value = path;
  };
  # Groups share packages, the C library for one.
  files = builtins.listToAttrs (
    map (package: named package.sha256 (fetchDebian package)) (
      lib.concatMap (group: debian.${group}.packages) groups
    )
    ++ lib.mapAttrsToList (
      name: kind: named pypi.${name}.files.${kind}.sha256 (fetchDistribution name kind)
    ) distributions
  );
in
if debian ? "python${python}" then
  linkFarm "aiter-attn-locked" files
else
  throw ''
    aiter-attn: there is no wheel for Python ${python}; toolchains/debian/lock.json has ${
      toString (builtins.filter (lib.hasPrefix "python") (builtins.attrNames debian))
    }. Let the flake's nixpkgs follow one whose python3 is one of these.''
