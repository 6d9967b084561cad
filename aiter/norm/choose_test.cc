// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Choices from tables of a test's own; choices_test.py has those from the library's.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <tuple>
#include <utility>

#include "aiter/norm/configure.h"

namespace AITER_ATTN_NAMESPACE::norm {
namespace {

using kernels::TunedRow;

constexpr DeviceTraits kHopper = {32, true, true, 227 << 10};
constexpr DeviceTraits kAmpere = {32, false, true, 163 << 10};
constexpr DeviceTraits kGfx942 = {64, false, false, 64 << 10};

auto numbers(const RowConfiguration& c) {
  return std::tuple(c.threads, c.lanes, c.cluster, c.stages, c.ctas_per_sm, c.waves, c.keep_weights,
                    c.hold_row, c.lag, c.on_demand);
}

// Of dense rows: x_bytes are those of an element, all_bytes those of a column of all matrices.
RowTraits rows(int64_t hidden, int vector, int x_bytes, int all_bytes, int weight_bytes = 0) {
  return {hidden, vector, x_bytes, all_bytes, weight_bytes, 0, true, false, 0, x_bytes};
}

// A row serves smaller sizes down to the row above, with as many vectors to a thread.
TEST(Choose, LanesFollowTheWidth) {
  const RowConfiguration c = {768, 384, 1, 0, 1, 0, 0, 1, 0, 0};
  const TunedRow tuned[] = {{1024, {128, 16, 1, 0, 1, 0, 0, 1, 0, 0}}, {6144, c}};
  const RowConfigurations table = {tuned, 2, c};
  for (const auto& [hidden, lanes] : std::array<std::pair<int, int>, 5>{
           {{6144, 384}, {6143, 384}, {5120, 320}, {1544, 128}, {1032, 96}}}) {
    RowConfiguration narrow = c;
    narrow.lanes = lanes;
    narrow.threads = 2 * lanes;
    EXPECT_EQ(numbers(choose(table, rows(hidden, 8, 2, 2), kHopper)), numbers(narrow)) << hidden;
    EXPECT_LE(hidden, 2 * 8 * lanes) << hidden;
    // Of four bytes an element, half as many columns are as wide.
    const int of_half = choose(table, rows(hidden / 2, 4, 4, 4), kHopper).lanes;
    EXPECT_TRUE(of_half == lanes || of_half == lanes - 32) << hidden;
  }
  EXPECT_EQ(choose(table, rows(1000, 8, 2, 2), kHopper).lanes, 16);
  EXPECT_EQ(numbers(choose(table, rows(6145, 8, 2, 2), kHopper)), numbers(table.general));
}

TEST(Choose, LanesAreWholeWaves) {
  const RowConfiguration c = {192, 96, 1, 0, 1, 0, 0, 1, 0, 0};
  const TunedRow tuned[] = {{1536, c}};
  const RowConfiguration narrow = choose({tuned, 1, c}, rows(1536, 8, 2, 2), kGfx942);
  EXPECT_EQ(narrow.lanes, 128);
  EXPECT_EQ(narrow.threads, 128);
}

TEST(Choose, ARingThatDoesNotFitLosesSlotsFirst) {
  const RowConfiguration fits = {512, 512, 16, 4, 1, 1, 2, 1, 1, 0};
  const RowConfigurations table = {nullptr, 0, fits};
  EXPECT_EQ(numbers(choose(table, rows(131072, 8, 2, 4), kHopper)), numbers(fits));
  RowConfiguration wide = choose(table, rows(131072, 8, 2, 12), kHopper);
  EXPECT_LT(wide.stages, fits.stages);
  wide.stages = fits.stages;
  EXPECT_EQ(numbers(wide), numbers(fits));
}

TEST(Choose, WeightsThatDoNotFitAreReadForEveryRow) {
  const RowConfiguration kept = {128, 128, 8, 2, 3, 1, 3, 1, 0, 1};
  const RowConfigurations table = {nullptr, 0, kept};
  EXPECT_EQ(choose(table, rows(65536, 8, 2, 2, 1 << 10), kHopper).keep_weights, 0);
  EXPECT_EQ(numbers(choose(table, rows(65536, 8, 2, 2, 4), kHopper)), numbers(kept));
}

// Few rows: few vectors to a thread, and several CTAs of a cluster to a row. Of a handful there are
// more CTAs, each of whose threads has one vector; of hundreds, threads have four where rows are
// long.
TEST(Choose, FewRowsAreSharedByMoreThreads) {
  const RowConfigurations table = {nullptr, 0, {}};
  const auto of = [&](int few, int64_t hidden, const DeviceTraits& device) {
    RowTraits traits = rows(hidden, 8, 2, 4);
    traits.sums = 2;
    traits.few_rows = few;
    return choose(table, traits, device);
  };
  for (const auto& [few, hidden, threads, cluster, columns] :
       std::array<std::tuple<int, int, int, int, int>, 12>{{{kHundreds, 1024, 64, 1, 8},
                                                            {kHundreds, 4096, 256, 1, 8},
                                                            {kHundreds, 8192, 256, 1, 8},
                                                            {kHundreds, 32768, 256, 4, 32},
                                                            {kHundreds, 65536, 256, 8, 32},
                                                            {kDozens, 4096, 256, 1, 16},
                                                            {kDozens, 8192, 512, 1, 16},
                                                            {kDozens, 16384, 512, 2, 16},
                                                            {kHandful, 1024, 128, 1, 16},
                                                            {kHandful, 4096, 128, 4, 16},
                                                            {kHandful, 8192, 128, 8, 16},
                                                            {kHandful, 16384, 128, 8, 16}}}) {
    const RowConfiguration c = of(few, hidden, kHopper);
    EXPECT_EQ(c.lanes, threads) << hidden;
    EXPECT_EQ(c.threads, threads) << hidden;
    EXPECT_EQ(c.cluster, cluster) << hidden;
    EXPECT_EQ(c.waves, 0) << hidden;
    EXPECT_EQ(c.few_rows, columns) << hidden;
  }
  for (const int few : {kHandful, kDozens, kHundreds}) {
    EXPECT_EQ(of(few, 8192, kGfx942).threads, 512);
    EXPECT_EQ(of(few, 8192, kGfx942).cluster, 1);
  }
}

// Of a norm's backward pass: those that no cluster's registers hold; without clusters, those whose
// sums leave too little of a workgroup's.
TEST(Choose, LongRowsAreSplit) {
  const RowConfiguration cluster = {256, 256, 8, 2, 1, 1, 1, 1, 1, 0};
  const RowConfigurations table = {nullptr, 0, cluster};
  const auto of = [&](int64_t hidden, int sums, const DeviceTraits& device, int few = 0) {
    RowTraits traits = rows(hidden, 8, 2, 4);
    traits.sums = sums, traits.layer = sums == 2;
    traits.few_rows = few;
    return choose(table, traits, device).split;
  };
  EXPECT_EQ(of(131072, 2, kHopper), 0);
  EXPECT_EQ(of(131080, 2, kHopper), 1);
  EXPECT_EQ(of(49152, 2, kGfx942), 0);
  EXPECT_EQ(of(49160, 2, kGfx942), 1);
  EXPECT_EQ(of(65536, 1, kGfx942), 0);
  EXPECT_EQ(of(65544, 1, kGfx942), 1);
  EXPECT_EQ(of(16384, 2, kAmpere), 0);
  EXPECT_EQ(of(32768, 2, kAmpere), 1);
  EXPECT_EQ(of(32768, 1, kAmpere), 0);
  EXPECT_EQ(of(65536, 1, kAmpere), 1);
  // A handful of rows sooner, also where clusters are; more of them are enough for the device.
  EXPECT_EQ(of(16384, 2, kGfx942, kHandful), 0);
  EXPECT_EQ(of(16392, 2, kGfx942, kHandful), 1);
  EXPECT_EQ(of(65536, 2, kGfx942, kDozens), 0);
  EXPECT_EQ(of(65544, 2, kGfx942, kDozens), 1);
  EXPECT_EQ(of(131072, 1, kHopper, kHandful), 0);
  EXPECT_EQ(of(131080, 1, kHopper, kHandful), 1);
  EXPECT_EQ(of(1 << 20, 0, kGfx942), 0);
}

// Registers of a workgroup without a ring.
TEST(Choose, WithoutClustersRegistersHaveLess) {
  const RowConfigurations table = {nullptr, 0, {256, 256, 1, 3, 1, 1, 1, 1, 1, 0}};
  RowTraits backward = rows(4096, 8, 2, 4);
  backward.sums = 2, backward.layer = true;
  EXPECT_EQ(numbers(choose(table, backward, kAmpere)), numbers({256, 256, 1, 0, 2, 1, 1, 1, 0, 0}));
  // The sums alone.
  RowTraits of_layer = rows(16384, 8, 2, 4);
  of_layer.sums = 2, of_layer.layer = true;
  EXPECT_EQ(numbers(choose(table, of_layer, kAmpere)), numbers({512, 512, 1, 0, 1, 1, 0, 0, 0, 0}));
  const RowConfigurations wide = {nullptr, 0, {512, 512, 2, 2, 1, 1, 2, 1, 0, 0}};
  RowTraits of_rms = rows(16384, 8, 2, 4);
  of_rms.sums = 1;
  EXPECT_EQ(numbers(choose(wide, of_rms, kAmpere)), numbers({512, 512, 1, 0, 1, 1, 1, 1, 0, 0}));
  // Forward a CTA for every row.
  const RowConfigurations forward = {nullptr, 0, {64, 64, 4, 2, 4, 1, 1, 0, 0, 1}};
  EXPECT_EQ(numbers(choose(forward, rows(16384, 8, 2, 2, 4), kAmpere)),
            numbers({512, 512, 1, 0, 2, 0, 0, 1, 0, 0}));
}

TEST(Choose, RowsAreFewByOperationAndSize) {
  const auto few = [](RowOperation operation, int64_t count, int64_t hidden, int vector = 8) {
    RowTraits traits = rows(hidden, vector, 2, 4);
    traits.sixteen_bytes = vector == 8;
    return few_rows(operation, count, traits);
  };
  EXPECT_EQ(few(RowOperation::kRmsForward, 16, 4096), kHandful);
  EXPECT_EQ(few(RowOperation::kRmsForward, 64, 4096), kDozens);
  EXPECT_EQ(few(RowOperation::kRmsForward, 65, 4096), 0);
  EXPECT_EQ(few(RowOperation::kLayerForward, 256, 4096), kDozens);
  EXPECT_EQ(few(RowOperation::kLayerForward, 512, 4096), kHundreds);
  EXPECT_EQ(few(RowOperation::kLayerForward, 513, 4096), 0);
  EXPECT_EQ(few(RowOperation::kLayerForward, 512, 2048), 0);
  EXPECT_EQ(few(RowOperation::kLayerForward, 1, 1024), 0);
  EXPECT_EQ(few(RowOperation::kLayerForward, 64, 65536), 0);
  EXPECT_EQ(few(RowOperation::kSoftmaxBackward, 128, 4096), kDozens);
  EXPECT_EQ(few(RowOperation::kSoftmaxBackward, 129, 4096), 0);
  EXPECT_EQ(few(RowOperation::kSoftmaxBackward, 512, 8192), kHundreds);
  EXPECT_EQ(few(RowOperation::kSoftmaxForward, 512, 8192), 0);
  EXPECT_EQ(few(RowOperation::kRmsBackward, 16, 16384), kHandful);
  EXPECT_EQ(few(RowOperation::kRmsBackward, 17, 16384), kDozens);
  EXPECT_EQ(few(RowOperation::kRmsBackward, 128, 16384), kDozens);
  EXPECT_EQ(few(RowOperation::kRmsBackward, 129, 16384), kHundreds);
  EXPECT_EQ(few(RowOperation::kRmsBackward, 512, 16384), kHundreds);
  EXPECT_EQ(few(RowOperation::kRmsBackward, 512, 16392), 0);
  EXPECT_EQ(few(RowOperation::kRmsBackward, 513, 64), 0);
  EXPECT_EQ(few(RowOperation::kLayerBackward, 1, 50257, 1), 0);
}

// A row of a handful has as many CTAs as leave a thread one vector, and RMSNorm's as there can be;
// of dozens and hundreds, fewer.
TEST(Choose, FewRowsForward) {
  const RowConfigurations table = {nullptr, 0, {1024, 1024, 1, 0, 1, 0, 0, 0, 0, 0}};
  const auto of = [&](int few, int all_bytes, int weight_bytes, int64_t hidden,
                      const DeviceTraits& device = kHopper) {
    RowTraits traits = rows(hidden, 8, 2, all_bytes, weight_bytes);
    traits.few_rows = few;
    traits.layer = weight_bytes == 4;  // gamma and beta
    return choose(table, traits, device);
  };
  const RowConfiguration handful = of(kHandful, 2, 2, 8192), dozens = of(kDozens, 2, 2, 8192);
  EXPECT_EQ(numbers(handful), numbers({64, 64, 8, 0, 1, 0, 1, 1, 0, 0}));
  EXPECT_EQ(numbers(of(kHandful, 2, 2, 4096)), numbers({32, 32, 8, 0, 1, 0, 1, 1, 0, 0}));
  EXPECT_EQ(numbers(of(kHandful, 2, 4, 8192)), numbers({128, 128, 8, 0, 1, 0, 1, 1, 0, 0}));
  EXPECT_EQ(numbers(dozens), numbers({128, 128, 2, 1, 1, 0, 1, 1, 0, 0}));
  // Copied rows leave no thread idle.
  EXPECT_EQ(numbers(of(kDozens, 2, 2, 5120)), numbers({160, 160, 2, 0, 1, 0, 1, 1, 0, 0}));
  EXPECT_EQ(numbers(of(kDozens, 2, 2, 6144)), numbers({96, 96, 2, 1, 1, 0, 1, 1, 0, 0}));
  EXPECT_EQ(numbers(of(kHundreds, 2, 4, 8192)), numbers({256, 256, 1, 1, 4, 0, 0, 1, 0, 0}));
  EXPECT_EQ(numbers(of(kHundreds, 4, 0, 8192)), numbers({512, 512, 1, 0, 4, 0, 0, 1, 0, 0}));
  // Without clusters, of a handful as of dozens; hundreds are many.
  EXPECT_EQ(numbers(of(kHandful, 2, 2, 8192, kGfx942)),
            numbers({512, 512, 1, 0, 1, 0, 1, 1, 0, 0}));
  EXPECT_EQ(numbers(of(kDozens, 2, 2, 8192, kGfx942)), numbers(of(kHandful, 2, 2, 8192, kGfx942)));
  EXPECT_EQ(numbers(of(kHundreds, 2, 4, 8192, kGfx942)), numbers(of(0, 2, 4, 8192, kGfx942)));
}

// A bulk copy brings whole vectors of 16 bytes.
TEST(Choose, FewRowsOfOtherVectorsHaveNoRing) {
  const RowConfigurations table = {nullptr, 0, {}};
  for (const int few : {kHandful, kDozens, kHundreds}) {
    RowTraits traits = rows(4096, 4, 2, 2, 4);
    traits.few_rows = few, traits.sixteen_bytes = false;
    EXPECT_EQ(choose(table, traits, kHopper).stages, 0) << few;
  }
}

// Of shifted rows of a norm's backward pass, as many vectors to a thread as leave the fewest idle.
TEST(Choose, ShiftedBackwardPassesHaveFewIdleThreads) {
  const RowConfigurations table = {nullptr, 0, {1024, 1024, 1, 0, 1, 0, 0, 0, 0, 0}};
  const auto of = [&](int64_t hidden, int sums, const DeviceTraits& device = kHopper,
                      int x_bytes = 2, int all_bytes = 4, int largest_bytes = 2) {
    RowTraits shifted = rows(hidden, 16 / x_bytes, x_bytes, all_bytes);
    shifted.shifted = true, shifted.sums = sums, shifted.largest_bytes = largest_bytes;
    return choose(table, shifted, device);
  };
  EXPECT_EQ(numbers(of(2881, 1)), numbers({384, 128, 1, 2, 1, 1, 2, 1, 0, 0}));
  EXPECT_EQ(numbers(of(4097, 1)), numbers({192, 192, 1, 2, 1, 1, 1, 1, 0, 0}));
  EXPECT_EQ(numbers(of(4097, 1, kHopper, 2, 6)), numbers({384, 192, 1, 2, 1, 1, 2, 1, 0, 0}));
  EXPECT_EQ(numbers(of(50257, 1)), numbers({320, 320, 4, 2, 1, 1, 2, 1, 0, 0}));
  EXPECT_EQ(numbers(of(8193, 2)), numbers({352, 352, 1, 2, 1, 1, 2, 1, 0, 0}));
  EXPECT_EQ(numbers(of(50257, 2)), numbers({416, 416, 8, 2, 1, 1, 2, 1, 0, 0}));
  EXPECT_EQ(numbers(of(65537, 2)), numbers({352, 352, 8, 2, 1, 1, 2, 1, 0, 0}));
  EXPECT_EQ(numbers(of(201089, 2)), numbers({256, 256, 16, 2, 1, 1, 2, 0, 0, 0}));
  // The table's: of few columns, of float32 alone or beside 16 bits, and without clusters. Very
  // many are split.
  EXPECT_EQ(of(1001, 1).lanes, 1024);
  EXPECT_EQ(of((1 << 18) + 1, 1).split, 1);
  EXPECT_EQ(of(12289, 1).lanes, 224);
  EXPECT_EQ(of(12289, 1, kHopper, 4, 8, 4).lanes, 1024);
  EXPECT_EQ(of(12289, 1, kHopper, 2, 6, 4).lanes, 1024);
  EXPECT_EQ(of(12289, 1, kGfx942).lanes, 1024);
}

// Of shifted rows of a norm, shared memory has gamma as long as it fits.
TEST(Choose, ShiftedNormsKeepTheirWeightsInSharedMemory) {
  const RowConfiguration unused = {1024, 1024, 1, 0, 1, 0, 0, 0, 0, 0};
  const RowConfigurations table = {nullptr, 0, unused};
  const auto of = [&](int64_t hidden, const DeviceTraits& device) {
    RowTraits shifted = rows(hidden + 7, 8, 2, 2, 4);
    shifted.shifted = true;
    return choose(table, shifted, device);
  };
  for (const auto& [hidden, lanes, cluster] : std::array<std::tuple<int, int, int>, 4>{
           {{2881, 64, 1}, {4097, 96, 1}, {50257, 160, 8}, {201089, 640, 8}}}) {
    const RowConfiguration c = of(hidden, kHopper);
    EXPECT_EQ(c.lanes, lanes) << hidden;
    EXPECT_EQ(c.cluster, cluster) << hidden;
    EXPECT_EQ(c.keep_weights, 3) << hidden;
    EXPECT_EQ(c.hold_row, 1) << hidden;
  }
  EXPECT_EQ(of(4097, kGfx942).keep_weights, 3);
  EXPECT_EQ(of(50257, kGfx942).keep_weights, 0);
  EXPECT_EQ(of(1001, kHopper).keep_weights, 0);
}

// Of shifted rows of softmax, forward registers hold a row of a CTA that stays, backward none.
TEST(Choose, ShiftedSoftmaxSharesRowsOut) {
  const RowConfigurations table = {nullptr, 0, {1024, 1024, 1, 0, 1, 0, 0, 1, 0, 0}};
  const auto of = [&](int64_t hidden, bool backward, const DeviceTraits& device = kHopper) {
    RowTraits shifted = rows(hidden + 7, 8, 2, backward ? 4 : 2);
    shifted.shifted = true;
    return numbers(choose(table, shifted, device));
  };
  EXPECT_EQ(of(4097, false), numbers({96, 96, 1, 1, 8, 1, 0, 1, 0, 0}));
  EXPECT_EQ(of(4097, true), numbers({96, 96, 1, 1, 10, 0, 0, 0, 0, 0}));
  EXPECT_EQ(of(50257, false), numbers({160, 160, 8, 1, 4, 1, 0, 1, 0, 0}));
  EXPECT_EQ(of(50257, true), numbers({160, 160, 8, 1, 6, 0, 0, 0, 0, 0}));
  EXPECT_EQ(of(201089, true), numbers({320, 320, 16, 1, 3, 0, 0, 0, 0, 0}));
  // The table's: of few columns, and without clusters.
  EXPECT_EQ(of(1001, true), numbers({1024, 1024, 1, 0, 1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(of(4097, true, kGfx942), numbers({1024, 1024, 1, 0, 1, 0, 0, 1, 0, 0}));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::norm
