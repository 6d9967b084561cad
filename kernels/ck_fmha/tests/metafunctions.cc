// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// The results of Composable Kernel's metafunctions. It must compile against upstream's sources and
// against those with the patches that make it cheaper to compile.
#include <type_traits>

#include "ck_tile/core.hpp"

namespace ck_tile {
namespace {

template <typename A, typename B>
constexpr bool same = std::is_same_v<std::remove_cv_t<A>, B>;

// Sorting: of equal values the last one comes first.
using Mixed = sequence<3, 1, 3, 2, 1, 1>;
template <typename Values>
using Sorted = sequence_sort<Values, less<index_t>>;
template <typename Values>
using Unique = sequence_unique_sort<Values, less<index_t>, equal<index_t>>;

static_assert(same<Sorted<Mixed>::type, sequence<1, 1, 1, 2, 3, 3>>);
static_assert(same<Sorted<Mixed>::sorted2unsorted_map, sequence<5, 4, 1, 3, 2, 0>>);
static_assert(same<Sorted<sequence<>>::type, sequence<>>);
static_assert(same<Sorted<sequence<7>>::sorted2unsorted_map, sequence<0>>);
static_assert(same<Unique<Mixed>::type, sequence<1, 2, 3>>);
static_assert(same<Unique<Mixed>::sorted2unsorted_map, sequence<5, 3, 2>>);
static_assert(same<Unique<sequence<4, 4>>::sorted2unsorted_map, sequence<1>>);

// Permutations.
static_assert(is_valid_sequence_map<sequence<2, 0, 3, 1>>::value);
static_assert(is_valid_sequence_map<sequence<>>::value);
static_assert(!is_valid_sequence_map<sequence<2, 0, 3, 0>>::value);
static_assert(!is_valid_sequence_map<sequence<2, 0, 4, 1>>::value);
static_assert(!is_valid_sequence_map<sequence<-1, 0, 1>>::value);
static_assert(same<sequence_map_inverse<sequence<2, 0, 3, 1>>::type, sequence<1, 3, 0, 2>>);
using Letters = sequence<5, 6, 7>;
static_assert(same<decltype(Letters::extract(sequence<2, 0>{})), sequence<7, 5>>);
static_assert(same<decltype(Letters::extract(number<1>{})), sequence<6>>);
static_assert(same<decltype(Letters::reorder_new_to_old(sequence<2, 0, 1>{})), sequence<7, 5, 6>>);
static_assert(same<decltype(Letters::reorder_old_to_new(sequence<2, 0, 1>{})), sequence<6, 7, 5>>);

// Generated sequences.
struct Square {
  CK_TILE_HOST_DEVICE constexpr index_t operator()(index_t i) const { return i * i; }
};
static_assert(same<sequence_gen<4, Square>::type, sequence<0, 1, 4, 9>>);
static_assert(same<sequence_gen<0, Square>::type, sequence<>>);
static_assert(same<arithmetic_sequence_gen<3, 9, 2>::type, sequence<3, 5, 7>>);
static_assert(same<arithmetic_sequence_gen<3, 0, -1>::type, sequence<3, 2, 1>>);
static_assert(same<arithmetic_sequence_gen<3, 3, 1>::type, sequence<>>);
static_assert(same<arithmetic_sequence_gen<0, 3, 1>::type, sequence<0, 1, 2>>);
static_assert(same<uniform_sequence_gen<3, -1>::type, sequence<-1, -1, -1>>);

// The space-filling curve goes there and back, in another order of dimensions too.
template <typename Curve, index_t... Accesses>
constexpr auto digits(sequence<Accesses...>) {
  constexpr auto digits_of = [](auto at) {
    return at[number<0>{}] * 100 + at[number<1>{}] * 10 + at[number<2>{}];
  };
  return sequence<digits_of(Curve::get_index(number<Accesses>{}))...>{};
}
using There = space_filling_curve<sequence<2, 3, 4>, sequence<0, 1, 2>, sequence<1, 1, 2>>;
static_assert(same<decltype(digits<There>(make_index_sequence<12>{})),
                   sequence<0, 2, 12, 10, 20, 22, 122, 120, 110, 112, 102, 100>>);
using Across = space_filling_curve<sequence<2, 4, 2>, sequence<1, 0, 2>, sequence<1, 2, 2>>;
static_assert(same<decltype(digits<Across>(make_index_sequence<4>{})), sequence<0, 100, 120, 20>>);
using Straight =
    space_filling_curve<sequence<2, 3, 2>, sequence<0, 1, 2>, sequence<1, 1, 2>, false>;
static_assert(
    same<decltype(digits<Straight>(make_index_sequence<6>{})), sequence<0, 10, 20, 100, 110, 120>>);

// A distribution with replication, two P and two Y: its whole type.
using Encoding = tile_distribution_encoding<
    sequence<2>, tuple<sequence<4, 2, 8>, sequence<16, 4>>, tuple<sequence<1, 0>, sequence<1, 2>>,
    tuple<sequence<0, 0>, sequence<1, 0>>, sequence<1, 2>, sequence<2, 1>>;
template <index_t... Lengths>
using Numbers = tuple<number<Lengths>...>;
using PsYsToXs = tensor_adaptor<
    tuple<replicate<Numbers<2>>, unmerge<Numbers<4, 2, 8>, false>, unmerge<Numbers<16, 4>, false>,
          merge_v2_magic_division<Numbers<4, 2>>, merge_v2_magic_division<Numbers<2, 16>>>,
    tuple<sequence<>, sequence<0>, sequence<1>, sequence<3, 2>, sequence<4, 6>>,
    tuple<sequence<2>, sequence<3, 4, 5>, sequence<6, 7>, sequence<8>, sequence<9>>, sequence<0, 1>,
    sequence<8, 9, 5, 7>>;
using YsToD = tensor_descriptor<tuple<unmerge<Numbers<8, 4>, false>>, tuple<sequence<0>>,
                                tuple<sequence<1, 2>>, sequence<1, 2>, number<32>,
                                sequence<-1, -1, -1>, sequence<-1, -1, -1>>;
using Distribution = decltype(make_static_tile_distribution(Encoding{}));
static_assert(same<Distribution,
                   tile_distribution<PsYsToXs, YsToD, Encoding,
                                     detail::tile_distribution_detail<
                                         tuple<sequence<2>, sequence<3, 4, 5>, sequence<6, 7>>>>>);

// Look-ups in its adaptor: hidden dimensions, and where one of them comes from.
template <index_t Hidden, index_t Transform, index_t Upper>
constexpr bool comes_from() {
  constexpr auto at = PsYsToXs::get_transform_and_its_upper_dimension(number<Hidden>{});
  return at[number<0>{}] == Transform && at[number<1>{}] == Upper && at[number<2>{}];
}
static_assert(PsYsToXs::get_num_of_hidden_dimension() == 10);
static_assert(comes_from<2, 0, 0>() && comes_from<5, 1, 2>() && comes_from<9, 4, 0>());
static_assert(!PsYsToXs::get_transform_and_its_upper_dimension(number<10>{})[number<2>{}]);
static_assert(PsYsToXs::is_static() && PsYsToXs{}.get_element_size() == 8 * 32 * 8 * 4);

// The facts of an encoding: R and H lengths, which Y each is, and the spans of Y.
using Rows = array<array<index_t, 3>, 3>;
constexpr Rows rows(const index_t (&values)[9]) {
  Rows r;
  for (index_t i = 0; i < 9; ++i) r(i / 3)(i % 3) = values[i];
  return r;
}
using Known = Encoding::detail;
static_assert(Known::rhs_lengthss_ == rows({2, -1, -1, 4, 2, 8, 16, 4, -1}));
static_assert(Known::rhs_major_minor_to_ys_ == rows({-1, -1, -1, -1, -1, 0, -1, 1, -1}));
static_assert(Known::rhs_major_minor_to_span_minor_ == rows({-1, -1, -1, -1, -1, 0, -1, 0, -1}));
static_assert(Known::distributed_spans_lengthss_[0][0] == 8 &&
              Known::distributed_spans_lengthss_[1][0] == 4);
static_assert(Known::ndims_distributed_spans_minor_ == make_array<index_t>(1, 1));

}  // namespace
}  // namespace ck_tile
