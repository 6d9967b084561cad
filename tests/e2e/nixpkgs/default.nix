# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
# Stands in for nixpkgs in tests: the functions and packages that the flake uses, with the names and
# arguments that nixpkgs has, and no others. Programs are those of the locked Debian system at
# /run/system, each started by a script with that system's own loader and libraries; locked files
# come from /run/locked, where nixpkgs would ask the network. Unknown arguments are errors.
let
  system = "x86_64-linux";
  tools = "/run/system";
  loader = "${tools}/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
  libraries = "${tools}/usr/lib/x86_64-linux-gnu";

  lib = {
    inherit (builtins) concatMap;
    getLib = package: package;
    hasPrefix = prefix: text: builtins.substring 0 (builtins.stringLength prefix) text == prefix;
    licenses.asl20 = { };
    makeLibraryPath = packages: builtins.concatStringsSep ":" (map (p: "${p}/lib") packages);
    mapAttrsToList = f: set: map (name: f name set.${name}) (builtins.attrNames set);
    optionalAttrs = condition: set: if condition then set else { };
    removeSuffix =
      suffix: text:
      let
        length = builtins.stringLength text - builtins.stringLength suffix;
      in
      if length >= 0 && builtins.substring length (-1) text == suffix then
        builtins.substring 0 length text
      else
        text;
    splitString =
      separator: text: builtins.filter builtins.isString (builtins.split separator text);
  };

  # A derivation made by a shell script. Nix takes a closed output for the builder's end, and kills
  # it: so the last process must be the shell, not one that the shell became.
  run =
    name: script: attributes:
    derivation (
      {
        inherit name system;
        builder = "/bin/sh";
        args = [
          "-euc"
          "${script}\n:"
        ];
        PATH = "${programs}/bin";
      }
      // attributes
    );

  # Scripts for programs: what nixpkgs has as bash, coreutils, git and so on, in one.
  programs = derivation {
    name = "programs";
    inherit system;
    builder = "/bin/sh";
    args = [
      "-euc"
      ''
        d="${loader} --library-path ${libraries} ${tools}/usr/bin"
        $d/mkdir -p $out/bin
        for tool in ${tools}/usr/bin/*; do
          name=''${tool##*/}
          case $name in python* | pip* | git | dpkg* | nix* | bwrap | strace) continue ;; esac
          start="exec ${loader} --library-path ${libraries} --argv0 $name"
          printf '#!/bin/sh\n%s %s "$@"\n' "$start" "$tool" > $out/bin/$name
          $d/chmod 755 $out/bin/$name
        done
        :
      ''
    ];
  };

  script =
    name: tool: prelude:
    run name ''
      mkdir -p $out/bin
      cat > $out/bin/${name} <<'EOF'
      #!/bin/sh
      ${prelude}
      exec ${loader} --library-path ${libraries} --argv0 "$0" ${tools}/usr/bin/${tool} "$@"
      EOF
      chmod 755 $out/bin/${name}
    '' { };

  dpkg = run "dpkg" ''
    mkdir -p $out/bin
    for name in dpkg-deb dpkg; do
      cat > $out/bin/$name <<EOF
    #!/bin/sh
    exec ${loader} --library-path ${libraries} --argv0 $name ${tools}/usr/bin/$name "\$@"
    EOF
      chmod 755 $out/bin/$name
    done
  '' { };

  gitMinimal = script "git" "git" ''
    export GIT_EXEC_PATH=${tools}/usr/lib/git-core
  '';

  # Debian's Python. Packages are not told apart: all that is there can be imported.
  interpreter =
    prelude:
    run "python3" ''
      mkdir -p $out/bin
      cat > $out/bin/python3 <<'EOF'
      #!/bin/sh
      ${prelude}
      exec ${loader} --library-path ${libraries} --argv0 "$0" ${tools}/usr/bin/python3.13 "$@"
      EOF
      chmod 755 $out/bin/python3
      ln -s ${tools}/usr/lib $out/lib
    '' { };
  python3 = interpreter "" // {
    pythonVersion = "3.13";
    pkgs = {
      pip = "pip";
    };
    # numpy and ml_dtypes come from /run/site-packages: the wheels that are locked.
    withPackages =
      choose:
      builtins.seq (choose {
        numpy = "numpy";
        ml-dtypes = "ml-dtypes";
      }) (interpreter "export PYTHONPATH=$PYTHONPATH:/run/site-packages");
    buildEnv.override =
      { extraLibs, makeWrapperArgs }:
      assert extraLibs == [ "pip" ];
      assert builtins.all (lib.hasPrefix "--prefix LD_LIBRARY_PATH : ") makeWrapperArgs;
      interpreter "";
  };

  fetchLocked =
    { name, sha256 }:
    derivation {
      inherit name system;
      builder = "/bin/sh";
      args = [
        "-euc"
        "${loader} --library-path ${libraries} ${tools}/usr/bin/cp /run/locked/${sha256} $out; :"
      ];
      outputHashMode = "flat";
      outputHashAlgo = "sha256";
      outputHash = sha256;
    };

  fetchurl =
    {
      url,
      sha256,
      name ? baseNameOf url,
    }:
    assert builtins.match "mirror://debian/pool/main/.*\\.deb" url != null;
    fetchLocked { inherit name sha256; };

  # As nixpkgs does, a wheel's URL is made of its name's parts: the name has to come out.
  fetchPypi =
    {
      pname,
      version,
      sha256,
      format ? "setuptools",
      dist ? "py2.py3",
      python ? "py2.py3",
      abi ? "none",
      platform ? "any",
    }:
    fetchLocked {
      inherit sha256;
      name =
        if format == "wheel" then
          assert dist == python;
          "${pname}-${version}-${python}-${abi}-${platform}.whl"
        else
          "${pname}-${version}.tar.gz";
    };

  linkFarm =
    name: entries:
    run name ''
      mkdir -p $out
      ${builtins.concatStringsSep "\n" (
        lib.mapAttrsToList (entry: path: "ln -s ${path} $out/${entry}") entries
      )}
    '' { };

  runCommand = name: attributes: script: run name script attributes;

  writeText =
    name: text:
    run name ''
      printf '%s' "$text" > $out
    '' { inherit text; };

  writeShellScript =
    name: text:
    run name ''
      { echo '#!${bash}/bin/bash'; printf '%s' "$text"; } > $out
      chmod 755 $out
    '' { inherit text; };

  # Its loader has a folder of its own to look for the C library in.
  glibc = run "glibc" ''
    mkdir -p $out/lib
    printf '#!/bin/sh\nexec ${loader} --library-path ${libraries} "$@"\n' \
      > $out/lib/ld-linux-x86-64.so.2
    chmod 755 $out/lib/ld-linux-x86-64.so.2
  '' { };

  writeShellScriptBin =
    name: text:
    run name ''
      mkdir -p $out/bin
      { echo '#!/bin/sh'; printf '%s' "$text"; } > $out/bin/${name}
      chmod 755 $out/bin/${name}
    '' { inherit text; };

  # The phases that the flake has, in the order and the folder that stdenv has them.
  stdenvNoCC.mkDerivation =
    {
      pname,
      version,
      src,
      nativeBuildInputs,
      dontConfigure,
      buildPhase,
      dontInstall,
      dontFixup,
      meta,
      AITER_ATTN_MIRROR,
      AITER_ATTN_STRICT,
      BAZELW_MODE,
    }:
    assert dontConfigure && dontInstall && dontFixup;
    run "${pname}-${version}"
      ''
        export PATH="$tools:$PATH" NIX_BUILD_CORES=''${NIX_BUILD_CORES:-1}
        cp -r ${src} source
        chmod -R u+w source
        cd source
        ${buildPhase}
      ''
      {
        inherit AITER_ATTN_MIRROR AITER_ATTN_STRICT BAZELW_MODE;
        tools = builtins.concatStringsSep ":" (map (p: "${p}/bin") nativeBuildInputs);
      };

  bash = run "bash" ''
    mkdir -p $out/bin
    ln -s ${tools}/usr/bin/bash-static $out/bin/bash
  '' { };

  mkShellNoCC =
    {
      packages,
      shellHook,
      BAZELW_BAZELRC,
      BAZELW_MODE,
    }:
    derivation {
      name = "shell";
      inherit
        system
        shellHook
        BAZELW_BAZELRC
        BAZELW_MODE
        ;
      builder = "${bash}/bin/bash";
      args = [ ];
      stdenv = ./stdenv;
      nativeBuildInputs = packages ++ [ programs ];
      outputs = [ "out" ];
    };

  pkgs = {
    inherit
      bash
      dpkg
      fetchPypi
      fetchurl
      gitMinimal
      glibc
      lib
      linkFarm
      mkShellNoCC
      python3
      runCommand
      stdenvNoCC
      writeShellScript
      writeShellScriptBin
      writeText
      ;
    bashInteractive = bash;
    # It has no programs for Nix's own language.
    nixfmt-tree = script "treefmt" "true" "" // {
      meta.mainProgram = "treefmt";
    };
    stdenv.cc.cc = "/run/system/usr";
    inherit callPackage;
  };

  callPackage =
    path: arguments:
    let
      f = import path;
    in
    f (builtins.intersectAttrs (builtins.functionArgs f) pkgs // arguments);
in
pkgs
