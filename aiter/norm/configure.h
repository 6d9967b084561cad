// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Which kernel serves a call on a device, and how it shares the rows out. Arithmetic alone: values
// in, values out.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "aiter/norm/problem.h"
#include "kernels/norm/configurations.h"

namespace AITER_ATTN_NAMESPACE::norm {

using kernels::RowConfiguration;
using kernels::RowConfigurations;
using kernels::RowOperation;

// The traits of a device that a choice depends on.
struct DeviceTraits {
  int warp;              // threads
  bool bulk_copies;      // and clusters
  bool named_barriers;   // rows of several warps can share a CTA
  int64_t shared_bytes;  // that one CTA, or all of a multiprocessor, can have
};

// Of "sm_90", "gfx942", ... Throws Status::kUnsupported where the kernels cannot run there.
DeviceTraits device_traits(const std::string& arch, int64_t shared_bytes);

// The traits of rows that a configuration follows from, beside the device and the operation.
struct RowTraits {
  int64_t hidden;      // columns; of shifted rows those of all their vectors of memory, but
                       // norm_backward's vectors are those of the row
  int vector;          // columns that a thread moves at once
  int x_bytes;         // of an element of the first matrix read
  int element_bytes;   // of a column, added up over the matrices read
  int weight_bytes;    // of a column of gamma and, if there is one, beta; 0 backward
  int sums;            // of norm_backward: 1 for dgamma, 2 for dgamma and dbeta; else 0
  bool sixteen_bytes;  // vectors of every matrix read are whole ones, of 16 bytes
  bool shifted;        // of a Shape
  int few_rows;        // as few_rows() says
  int largest_bytes;   // of an element, the largest of the matrices read
  bool layer;          // of LayerNorm
};

// Of how few rows a kernel is the one of `count` rows, whose time is how long a row takes rather
// than bandwidth; 0: of many.
inline constexpr int kHandful = 16, kDozens = 256, kHundreds = 512;
int few_rows(RowOperation operation, int64_t count, const RowTraits& rows);

// From a table of kernels/norm or, of few rows, by a rule, so that the device can run it.
RowConfiguration choose(const RowConfigurations& table, const RowTraits& rows,
                        const DeviceTraits& device);

// All that a call's kernels are compiled for. Calls of one shape differ in rows, numbers and
// addresses alone.
struct Shape {
  RowOperation operation;
  std::array<int32_t, 3> dtypes;  // attn_dtype of x, gamma and y (dy); of softmax the first
  int64_t hidden;
  int32_t vector;
  bool shifted;       // rows start at any element of a vector
  bool add;           // a residual, or dh
  bool beta;          // forward
  bool zero_centred;  // gamma is stored less 1
  int32_t mask;       // attn_softmax_mask
  bool on_demand;     // the call has a barrier
  int few_rows;       // as few_rows() says
  // Of norms; most calls are without.
  bool without_gamma;
  bool without_sums;  // backward: neither dgamma nor dbeta is wanted
  bool in_place;      // forward: the sum takes the residual's place
  int32_t scales;     // forward: attn_norm_scales

  auto fields() const {
    return std::tie(operation, dtypes, hidden, vector, shifted, add, beta, zero_centred, mask,
                    on_demand, few_rows, without_gamma, without_sums, in_place, scales);
  }
  bool operator<(const Shape& other) const { return fields() < other.fields(); }
};

Shape shape_of(const NormForward& call);
Shape shape_of(const NormBackward& call);
Shape shape_of(const SoftmaxForward& call);
Shape shape_of(const SoftmaxBackward& call);

// Whether few_rows() says shape.few_rows of the shape for some number of rows.
bool has_kind(const Shape& shape);

// dgamma and dbeta: the sums of the parts that norm_backward leaves. Of few rows it makes all.
inline constexpr char kColumnsSource[] = "norm_columns.cpp";

// The kernels of a shape on a device, as they are compiled and launched.
struct Kernels {
  RowConfiguration configuration;
  const char* source;                      // of kernels/norm
  std::vector<std::string> flags;          // -DNAME=VALUE
  const char* symbol;                      // of the kernel that takes the rows
  std::vector<std::string> columns_flags;  // norm_backward: of kColumnsSource; else none
  int columns_vector;                      // norm_backward: ROW_VECTOR of those; else 0
  int64_t slices;  // of a row that norm_long.cpp takes, each summed up ahead of it; else 0
  int slice_sums;  // of each: 1 or, of LayerNorm, 2
  uint32_t dynamic_shared_bytes;
  int sums;                  // norm_backward: of columns, which a second launch adds up; else 0
  int64_t column_ctas;       // norm_backward of few rows: of the grid, which sum columns; else 0
  bool waits_itself;         // the kernel that takes the rows, for the end of work ahead of it
  bool reduce_waits_itself;  // norm_backward_reduce, for the end of norm_backward
};

Kernels configure(const Shape& shape, const DeviceTraits& device);

// Clusters of a launch for `rows` rows, where the device holds `held` of them at a time.
int64_t groups_for(const RowConfiguration& c, int64_t rows, int64_t held);

// Whether a launch takes little longer than its rows, and should be under way before the work ahead
// of it has ended. Of more rows, workgroups that wait would take the place of other streams' work.
bool is_short(int64_t rows, int64_t hidden);

// The division of norm_backward's sums over the rows: parts of each sum, and rows of a part where
// norm_long.cpp makes them (0: norm_backward.cpp does).
struct Parts {
  int64_t count;
  int64_t rows_each;
};
Parts parts_for(const Kernels& made_for, int64_t rows, int64_t groups);

// Bytes of all parts, and of the sums of all slices, which lie behind them.
uint64_t workspace_bytes(const Kernels& kernels, const Parts& parts, int64_t rows, int64_t hidden);

}  // namespace AITER_ATTN_NAMESPACE::norm
