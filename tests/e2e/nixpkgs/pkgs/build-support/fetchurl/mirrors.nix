# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
# Nothing listens there: what is fetched comes from the folder of locked files.
{
  debian = [
    "ftp://127.0.0.1:9/debian/"
    "http://127.0.0.1:9/debian/"
  ];
}
