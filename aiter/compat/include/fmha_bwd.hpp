// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The description of a backward pass by which QoLA tells how much memory it takes, with the fields
// of Composable Kernel at 40ee1ee0.
#pragma once

#include <bias.hpp>
#include <mask.hpp>
#include <string>

struct fmha_bwd_traits {
  int seqlen_q;
  int seqlen_k;
  int batch;
  int max_seqlen_q;
  int max_seqlen_k;
  int hdim_q;
  int hdim_v;
  int nhead_q;
  int nhead_k;
  std::string data_type;
  bool is_group_mode;
  mask_enum mask_type;
  bias_enum bias_type;
  bool has_dbias;
  bool has_dropout;
  bool is_store_randval;
  bool is_deterministic;
};
