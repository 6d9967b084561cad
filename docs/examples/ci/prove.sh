#!/usr/bin/env bash
# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
# A night's part of the proof of compile groups: docs/examples/ci/prove.sh from a timer, anywhere.
# Each night takes the next shard, and goes on within it where an earlier night's budget ended, so
# that after some rounds all groups are proven. No build waits for that ("Compile groups" in
# kernels/README.md).
# It changes kernels/ck_fmha/groups/lock.json alone; review and commit that file.
#
#   PROVE_VARIANTS  variant sets, comma-separated; te
#   PROVE_ARCHS     archs, comma-separated; gfx942,gfx950
#   PROVE_SHARDS    into how many parts the groups are divided; 7
#   PROVE_MINUTES   after which no further group is begun; 60
set -euo pipefail
cd "$(dirname "$0")/../../.."

shards=${PROVE_SHARDS:-7}
day=$(($(date +%s) / 86400))
./bazelw run --config=cache //kernels/ck_fmha:prove_groups -- \
  --variants="${PROVE_VARIANTS:-te}" --archs="${PROVE_ARCHS:-gfx942,gfx950}" \
  --shard="$((day % shards + 1))/$shards" --budget="${PROVE_MINUTES:-60}"
