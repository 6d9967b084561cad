#!/usr/bin/env bash
# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
# A night's work, for a timer: docs/examples/ci/nightly.sh from anywhere. It runs all tests tagged
# `soak`, which CI of a commit leaves out, and then prove.sh beside it. One that fails does not keep
# the others from being run.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1

status=0
./bazelw test --config=cache --config=soak --keep_going //... || status=$?
docs/examples/ci/prove.sh || status=$?
exit "$status"
