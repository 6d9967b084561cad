#!/usr/bin/env bash
# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
# CI's steps for a commit: docs/examples/ci/ci.sh [STEP]... from anywhere; without a step, all.
# workflow.yml has the same steps for GitHub Actions; a test compares the two.
#
#   lint      formatters, linters, types
#   test      the default suite
#   build     wheels of all ABIs, archives, kernel packs
#   collect   these with manifest, SBOM and provenance, as a folder to keep as the run's artefact
#   publish   the same to where users find it; a pull request publishes nothing
#
#   CI_EVENT     main, which writes to the cache and publishes; or pull-request, which only reads
#   CI_CACHE     URL of the cache server, HTTP or gRPC; empty: the disk cache of this user
#   CI_OUT       folder that `collect` fills
#   CI_PUBLISH   folder or WebDAV URL that `publish` writes to; empty: nothing is published
#   CI_BUILDER   URI of who builds, for the provenance
#   CI_SOURCE    URI of the repository, for the provenance
#   CI_FLAGS     more flags for Bazel, in one string: --//kernels:archs=gfx942,gfx950
set -euo pipefail
cd "$(dirname "$0")/../../.."

STEPS=(lint test build collect publish)
# A locked file that no mirror serves any more is an error.
export AITER_ATTN_STRICT=1
# URLs may hold credentials: they stand in a file that others cannot read, and in no command.
rc=$(mktemp)
trap 'rm -f "$rc"' EXIT

configure() {
  case ${CI_EVENT:-} in
  # Writers of the cache decide what all others link: reviewed commits alone.
  main) config=ci ;;
  pull-request) config=remote-cache ;;
  *)
    echo "ci.sh: error: CI_EVENT is '${CI_EVENT:-}'; it may be main or pull-request" >&2
    return 1
    ;;
  esac
  case ${CI_CACHE:-} in
  "") echo "build --config=cache" ;;
  http://* | https://* | grpc://* | grpcs://*)
    echo "build --config=$config --remote_cache=$CI_CACHE"
    ;;
  *)
    # Bazel would build without a cache. The rest of the URL may hold credentials.
    echo "ci.sh: error: CI_CACHE begins with '${CI_CACHE%%:*}'; it may be http, https, grpc or" \
      "grpcs, followed by ://" >&2
    return 1
    ;;
  esac >"$rc"
  [[ -z ${CI_FLAGS:-} ]] || echo "build $CI_FLAGS" >>"$rc"
}

bazel() {
  ./bazelw --bazelrc="$rc" "$@"
}

step_lint() {
  bazel run //:lint
}

step_test() {
  bazel test //...
}

step_build() {
  bazel build //:release
}

step_collect() {
  release "${CI_OUT:?it is the folder that collect fills}"
}

step_publish() {
  if [[ $CI_EVENT != main ]]; then
    echo "ci.sh: a pull request publishes nothing"
  elif [[ -z ${CI_PUBLISH:-} ]]; then
    echo "ci.sh: CI_PUBLISH is empty: nothing is published"
  else
    release "$CI_PUBLISH"
  fi
}

# release TO: what is built, with its documents, to a folder or a server.
release() {
  AITER_ATTN_RELEASE_TO=$1 bazel run //:release -- \
    ${CI_BUILDER:+--builder="$CI_BUILDER"} ${CI_SOURCE:+--source="$CI_SOURCE"}
}

configure
(($#)) || set -- "${STEPS[@]}"
for step in "$@"; do
  [[ " ${STEPS[*]} " == *" $step "* ]] || {
    echo "ci.sh: error: there is no step '$step'; there are ${STEPS[*]}" >&2
    exit 1
  }
done
for step in "$@"; do
  printf '\n=== %s\n' "$step"
  "step_$step"
done
