// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/explain.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "aiter/attention/code_object.h"
#include "aiter/attention/preference.h"
#include "aiter/attention/problem/error.h"
#include "aiter/attention/published.h"
#include "aiter/runtime/library_store.h"
#include "kernels/archs/archs.h"
#include "kernels/published_sets/published_sets.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using kernels::Kind;
using kernels::kTraits;
using kernels::LaunchTable;
using kernels::Match;
using kernels::Row;
using kernels::TraitInfo;
using kernels::Traits;

template <typename Range>
std::string join(const Range& values, const char* separator = ", ") {
  std::string text;
  for (const auto& value : values) text += concat(text.empty() ? "" : separator, value);
  return text;
}

std::string head_size_text(int32_t qk, int32_t v) {
  return qk == v ? concat("head size ", qk) : concat("head sizes ", qk, " (q, k) and ", v, " (v)");
}

std::string describe(const Request& r, const Plan& plan) {
  std::vector<std::string> parts = {name_of(r.traits.dtype),
                                    head_size_text(r.head_size_qk, r.head_size_v)};
  for (const TraitInfo& trait : kTraits) {
    // lse is a trait of the kernel that combines parts.
    const bool of_plan = std::any_of(plan.begin(), plan.end(),
                                     [&trait](const Step& step) { return trait.of(step.kind); });
    if (!of_plan || trait.match != Match::kExact) continue;
    if (trait.offset == offsetof(Traits, dtype)) continue;
    // Traits that problems rarely ask for are named only where they do.
    const uint32_t value = trait.value(r.traits);
    const bool common = trait.offset == offsetof(Traits, group_mode) ||
                        trait.offset == offsetof(Traits, mask) ||
                        trait.offset == offsetof(Traits, lse);
    if (common || value != 0) parts.push_back(trait.texts[value]);
  }
  if (plan.spare_lse) parts.push_back("a place for one in the workspace");
  if (r.sum_heads) parts.push_back("shared key heads");
  if (r.sum_bias) parts.push_back("a sum of the bias's gradient");
  if (r.sink) parts.push_back("a sink");
  if (r.page_size != 0) parts.push_back(concat("pages of ", r.page_size));
  const int32_t splits = std::max(plan.splits, r.splits);
  if (splits > 1) parts.push_back(concat(splits, " splits"));
  const std::string lengths = r.pass->lengths(r);
  parts.push_back(lengths.empty() ? concat("seqlen ", r.seqlen_q, " x ", r.seqlen_k) : lengths);
  return join(parts) + concat(", on ", r.arch);
}

std::vector<std::string_view> archs(const LaunchTable& table, const Row* row = nullptr) {
  std::vector<std::string_view> list;
  for (uint32_t i = 0; i < table.arch_count(); ++i) {
    if (!row || table.object(*row, static_cast<int>(i))) list.push_back(table.arch(i));
  }
  return list;
}

// Completes "it is for ..." / "they are for ...".
std::string reason(const LaunchTable& table, const Row& row, const Request& request) {
  const Traits& t = row.traits;
  const Mismatch why = mismatch(table, row, request);
  switch (why.reason) {
    case Mismatch::kTrait: {
      const TraitInfo& trait = kTraits[why.trait];
      if (trait.match == Match::kExact) return trait.texts[trait.value(t)];
      return head_size_text(t.head_size_qk, t.head_size_v) + " at most";
    }
    case Mismatch::kQueries:
      return concat(t.max_seqlen_q, " queries at most");
    case Mismatch::kKeys:
      return concat(t.max_seqlen_k, " keys at most", t.group_mode ? ", of all sequences" : "");
    case Mismatch::kPadding:
      return "batches without padded queries";
    case Mismatch::kSeqlen: {
      std::vector<std::string> tiles;
      if (!t.pad_seqlen_q) tiles.push_back(concat(row.tile_seqlen_q, " (q)"));
      if (!t.pad_seqlen_k) tiles.push_back(concat(row.tile_seqlen_k, " (k)"));
      return "lengths in multiples of " + join(tiles, " and ");
    }
    case Mismatch::kPageSize:
      if (t.kind == Kind::kFwdAppendkv) {
        const int32_t keys = std::min<int32_t>(request.seqlen_new, row.tile_seqlen_k);
        return concat("pages of ", keys - 1, " keys or more");
      }
      return concat("pages of a multiple of ", row.tile_seqlen_k, " keys");
    case Mismatch::kAlignment:
      return concat("head sizes in multiples of ",
                    t.pad_head_size_qk ? row.head_size_alignment : row.tile_head_size_qk,
                    " (q, k) and ",
                    t.pad_head_size_v ? row.head_size_alignment : row.tile_head_size_v, " (v)");
    case Mismatch::kArch: {
      const std::vector<std::string_view> of_row = archs(table, &row);
      return of_row.empty() ? "archs that are not in this build" : join(of_row);
    }
    case Mismatch::kUnbuilt:
      return "calls that no kernel of the build serves";
    case Mismatch::kHazard:
      return "other problems: on this one its results may be wrong";
    case Mismatch::kNone:
      break;
  }
  return "the same, with bounds checks that are not needed here or later in order";
}

// Where a code object's bytes come from, and why the providers before it do not have them.
std::string explain_bytes(const runtime::CodeObjectRef& ref) {
  std::string text;
  for (const runtime::Store::Told& told : runtime::library_store().look(ref)) {
    if (told.answer.has) {
      return concat("  bytes from ", told.provider, told.is_of_other ? ", " : "",
                    told.is_of_other ? told.answer.text : "", "\n", text);
    }
    text += concat("    not from ", told.provider, ": ", told.answer.text, "\n");
  }
  return concat("  bytes from nowhere: ", ref.remedy(), "\n", text);
}

std::string explain_step(const LaunchTable& table, const Row& chosen, const Request& request) {
  const Kind kind = chosen.traits.kind;
  const int arch = table.find_arch(request.arch);
  std::string text = concat(name_of(kind), ": ", table.name(chosen), "\n  code object ",
                            runtime::hex(digest(table.object(chosen, arch)->key)), "\n  provider ",
                            kernels::provider_of(kind), "\n",
                            explain_bytes(code_object_ref(table, *table.object(chosen, arch))));
  struct Group {
    size_t count = 0;
    std::string_view example;
  };
  std::map<std::string, Group> others;
  for (uint32_t i = 0; i < table.row_count(); ++i) {
    const Row& row = table.row(i);
    if (&row == &chosen || row.traits.kind != kind) continue;
    Group& group = others[reason(table, row, request)];
    if (group.count++ == 0) group.example = table.name(row);
  }
  for (const auto& [why, group] : others) {
    text += concat("  not ", group.count, " for ", why, ", e.g. ", group.example, "\n");
  }
  return text;
}

// The kinds of a plan that no instance serves.
std::set<Kind> missing_kinds(const Plan& plan) {
  std::set<Kind> missing;
  for (const Step& step : plan) {
    if (!step.row) missing.insert(step.kind);
  }
  return missing;
}

std::string names_of(const std::set<Kind>& kinds) {
  std::vector<const char*> names;
  names.reserve(kinds.size());
  for (const Kind kind : kinds) names.push_back(name_of(kind));
  return join(names);
}

bool is_asm(const Request& request, const Plan& plan) {
  return request.pass->chooses_provider() &&
         std::string_view(kernels::provider_of(plan.main)) == "asm";
}

// Why AITER's assembly has no kernel for a request that it may take: the build lacks it.
std::string asm_absence(const LaunchTable& table, const Request& request) {
  const int arch = table.find_arch(request.arch);
  bool any = false, any_of_arch = false;
  for (uint32_t i = 0; i < table.row_count(); ++i) {
    const Row& row = table.row(i);
    if (row.traits.kind != request.asm_main) continue;
    any = true;
    any_of_arch = any_of_arch || (arch >= 0 && table.object(row, arch));
  }
  if (!any) return "this build has none of it: build with --//kernels:providers=ck,asm";
  if (!any_of_arch) return concat("it has no kernels for ", request.arch);
  Request by_name = request;
  by_name.preference = ATTN_KERNELS_ASM;
  const Plan plan = dispatch(table, by_name);
  const Row* const row = plan.main_row();
  if (!row) return "it has no such kernel";
  if (row->traits.rounding != request.traits.rounding) {
    return concat("its kernel rounds ",
                  kernels::kTexts_rounding[static_cast<int>(row->traits.rounding)]);
  }
  return concat("the build lacks ", names_of(missing_kinds(plan)), ", which goes with its kernel");
}

// The problems because of which the kernel that serves a request by name may be wrong; "": there
// is no such kernel, or it is right.
std::string defects_met(const LaunchTable& table, const Request& request) {
  Request by_name = request;
  by_name.preference = ATTN_KERNELS_ASM;
  const Row* const row = dispatch(table, by_name).main_row();
  if (!row) return {};
  const uint32_t met =
      hazards_met(*table.object(*row, table.find_arch(request.arch)), *row, request);
  std::vector<const char*> texts;
  for (size_t i = 0; i < std::size(kernels::kHazardTexts); ++i) {
    if (met >> i & 1) texts.push_back(kernels::kHazardTexts[i]);
  }
  if (texts.empty()) return {};
  return concat("results of ", table.name(*row), " may be wrong ", join(texts, ", and "),
                " (docs/asm-findings.md)");
}

// Why the kernels of AITER's assembly do not serve a request; "" where they do.
std::string why_not_asm(const LaunchTable& table, const Request& request) {
  if (request.not_asm) return concat("its kernels ", request.not_asm);
  if (request.preference == ATTN_KERNELS_CK) return "kernels is ck";
  if (!may_take_asm(request)) return concat("its kernels ", request.asm_by_name);
  const std::string defects = defects_met(table, request);
  return defects.empty() ? asm_absence(table, request) : defects;
}

// The preference among providers, and why another than the chosen one was passed over.
std::string explain_choice(const LaunchTable& table, const Request& request, const Plan& plan) {
  std::string text = concat("  kernels ", describe_preference(request.named_kernels), "\n");
  if (!is_asm(request, plan)) {
    return text + concat("  asm passed over: ", why_not_asm(table, request), "\n");
  }
  return text +
         concat("  ck passed over: ",
                needs_asm(request) ? "asm is asked for" : "asm is taken where AITER takes it",
                "\n");
}

// Whether the build lacks the bytes of some of a complete plan's kernels.
bool has_unbuilt(const LaunchTable& table, const Request& request, const Plan& plan) {
  const int arch = table.find_arch(request.arch);
  return std::any_of(plan.begin(), plan.end(),
                     [&](const Step& step) { return table.object(*step.row, arch)->size == 0; });
}

}  // namespace

std::string explain(const LaunchTable& table, Request request, const Plan& plan) {
  std::string text = concat(request.pass->name, ": ", describe(request, plan), "\n");
  const kernels::ArchFacts* const facts = kernels::find_arch(request.arch);
  if (facts && !facts->executed) {
    text += concat("  kernels for ", request.arch, " are built and not executed: the emulator ",
                   "lacks it, and no GPU has run them (docs/emulation.md#gfx12)\n");
  }
  if (request.pass->chooses_provider()) text += explain_choice(table, request, plan);
  request.traits.lse |= plan.spare_lse;
  request.takes_unbuilt = has_unbuilt(table, request, plan);
  const Row* previous = nullptr;
  for (const Step& step : plan) {
    if (step.row != previous) text += explain_step(table, *step.row, request);
    previous = step.row;
  }
  return text;
}

std::string how_to_build(std::vector<std::string_view> built, std::string_view arch) {
  if (!kernels::find_arch(arch)) {
    std::vector<std::string_view> all;
    for (const kernels::ArchFacts& known : kernels::kArchs) all.push_back(known.name);
    return concat("; no build has code for ", arch, ": --//kernels:archs= takes ", join(all));
  }
  built.push_back(arch);
  return concat(": build with --//kernels:archs=", join(built, ","));
}

std::string explain_unserved(const LaunchTable& table, Request request, const Plan& plan) {
  request.takes_unbuilt = true;
  const std::set<Kind> missing = missing_kinds(plan);
  std::string text =
      concat("no ", names_of(missing), " kernel in this build for ", describe(request, plan), ".");

  const std::vector<std::string_view> built = archs(table);
  if (table.find_arch(request.arch) < 0) {
    return text + concat(" It has code for ", built.empty() ? "no arch" : join(built), " only",
                         how_to_build(built, request.arch));
  }

  if (is_asm(request, plan) && !plan.main_row()) {
    return text + concat(" AITER's assembly, which ",
                         request.preference == ATTN_KERNELS_ASM ? "kernels (asm)" : "rounding",
                         " asks for, was passed over: ", why_not_asm(table, request),
                         ". With kernels = fastest and rounding = 0 Composable Kernel's may serve "
                         "the call");
  }

  std::set<std::string_view> dtypes, modes;
  std::set<std::pair<uint16_t, uint16_t>> head_sizes;
  const Row* nearest = nullptr;
  Mismatch least;
  for (uint32_t i = 0; i < table.row_count(); ++i) {
    const Row& row = table.row(i);
    if (missing.count(row.traits.kind) == 0) continue;
    dtypes.insert(name_of(row.traits.dtype));
    modes.insert(row.traits.group_mode ? "group" : "batch");
    head_sizes.insert({row.traits.head_size_qk, row.traits.head_size_v});
    // One that serves lacks another to go with. The last of equals: buckets grow.
    const Mismatch why = mismatch(table, row, request);
    if (why.reason == Mismatch::kNone || (nearest && why < least)) continue;
    nearest = &row;
    least = why;
  }
  if (!head_sizes.empty()) {
    std::vector<std::string> sizes;
    sizes.reserve(head_sizes.size());
    for (const auto& [qk, v] : head_sizes) {
      sizes.push_back(qk == v ? std::to_string(qk) : concat(qk, "/", v));
    }
    if (nearest) {
      text += concat(" The nearest, ", table.name(*nearest), ", is for ",
                     reason(table, *nearest, request), ".");
    }
    text += concat(" In the build: ", join(dtypes), "; head sizes up to ", join(sizes), "; ",
                   join(modes), " mode; ", join(built), ".");
  }
  Request with_spare_lse = request;
  with_spare_lse.spare_lse = !request.traits.lse;
  if (dispatch(table, with_spare_lse).is_complete()) {
    text += concat(" With a workspace of ", request.pass->workspace_function,
                   " bytes a kernel with lse serves it.");
  }
  text += concat(" Built with --//kernels:variants=", table.variant_set());
  const std::string_view wider = smallest_published_set(request, plan);
  if (!wider.empty()) return text + concat("; build with --//kernels:variants=", wider);
  const std::vector<std::string_view> sets(kernels::kPublishedSets,
                                           kernels::kPublishedSets + kernels::kPublishedSetCount);
  text += concat("; none of ", join(sets), " serves it");
  const std::vector<std::string_view> others = archs_served_by_published_sets(request, plan);
  if (others.empty()) return text + ": change the call";
  return text + concat(" on ", request.arch,
                       ", which Composable Kernel has no such kernel for: ", "use a GPU of ",
                       join(others), ", or change the call");
}

}  // namespace AITER_ATTN_NAMESPACE::attention
