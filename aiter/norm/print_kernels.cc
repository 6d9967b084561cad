// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Prints a list of kernels/norm/sets: configure()'s results for the devices below, and for
// the shapes that standard input has, one in a line: operation, type of x and of gamma, type of y,
// columns, 1 with a residual (or dh), 1 with gamma stored less 1, mask. sets.py writes them. Two
// more words, rows and 1 with a barrier, ask for the kernels of that one call.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "aiter/norm/configure.h"
#include "kernels/archs/archs.h"

namespace {

using namespace AITER_ATTN_NAMESPACE;

struct Device {
  std::string arch;
  int64_t shared_bytes;  // that a CTA can have, as the driver says
};

// AMD's are those whose waves the kernels are for.
std::vector<Device> devices() {
  std::vector<Device> all;
  for (const kernels::ArchFacts& arch : kernels::kArchs) {
    if (arch.wave_size == 64) all.push_back({std::string(arch.name), arch.lds});
  }
  all.insert(all.end(), {{"sm_80", 163 << 10},
                         {"sm_89", 99 << 10},
                         {"sm_90", 227 << 10},
                         {"sm_100", 227 << 10},
                         {"sm_100a", 227 << 10},
                         {"sm_103", 227 << 10},
                         {"sm_120", 99 << 10}});
  return all;
}

// A line of standard input.
struct Request {
  std::string operation, dtype, output;
  int64_t hidden;
  bool add, zero_centred;
  std::string mask;
  bool one_call;
  int64_t rows;
  bool barrier;
};

template <typename Value>
Value known(const std::map<std::string, Value>& values, const std::string& word) {
  const auto found = values.find(word);
  if (found != values.end()) return found->second;
  std::string words;
  for (const auto& [each, value] : values) words += " " + each;
  throw std::invalid_argument("'" + word + "' is none of" + words);
}

int32_t dtype(const std::string& word) {
  static const std::map<std::string, int32_t> kDtypes = {{"fp32", ATTN_DTYPE_FP32},
                                                         {"fp16", ATTN_DTYPE_FP16},
                                                         {"bf16", ATTN_DTYPE_BF16},
                                                         {"fp8_e4m3", ATTN_DTYPE_FP8_E4M3},
                                                         {"fp8_e5m2", ATTN_DTYPE_FP8_E5M2}};
  return known(kDtypes, word);
}

int32_t mask(const std::string& word) {
  static const std::map<std::string, int32_t> kMasks = {{"none", ATTN_SOFTMAX_MASK_NONE},
                                                        {"explicit", ATTN_SOFTMAX_MASK_EXPLICIT},
                                                        {"causal", ATTN_SOFTMAX_MASK_CAUSAL}};
  return known(kMasks, word);
}

constexpr char kLayerBackward[] = "layer_backward", kRmsBackward[] = "rms_backward";

bool is_norm_backward(const std::string& operation) {
  return operation == kLayerBackward || operation == kRmsBackward;
}

// Memory of its own, aligned for any vector.
attn_rows memory(int number, int64_t hidden) {
  return {reinterpret_cast<void*>(static_cast<uintptr_t>(number) << 40), hidden};
}

attn_norm_problem problem(const Request& request, bool layer) {
  attn_norm_problem p = {};
  p.kind = layer ? ATTN_NORM_LAYER : ATTN_NORM_RMS;
  p.rows = request.rows;
  p.hidden = request.hidden;
  p.x_dtype = p.weight_dtype = dtype(request.dtype);
  p.y_dtype = dtype(request.output);
  p.zero_centred = request.zero_centred;
  return p;
}

norm::Shape norm_forward(const Request& request, bool layer) {
  const auto rows = [&](int number) { return memory(number, request.hidden); };
  norm::NormForward call = {};
  call.p = problem(request, layer);
  call.x = rows(1);
  call.y = rows(2);
  call.gamma = rows(3).data;
  if (layer) call.beta = rows(4).data;
  if (request.add) {
    call.residual = rows(5);
    call.sum = rows(6);
  }
  if (request.barrier) call.barrier = rows(7).data;
  return shape_of(call);
}

norm::Shape norm_backward(const Request& request, bool layer) {
  const auto rows = [&](int number) { return memory(number, request.hidden); };
  norm::NormBackward call = {};
  call.p = problem(request, layer);
  call.x = rows(1);
  call.dy = rows(2);
  call.dx = rows(3);
  if (request.add) call.dh = rows(4);
  call.gamma = rows(5).data;
  call.dgamma = rows(6).data;
  if (layer) call.dbeta = rows(7).data;
  return shape_of(call);
}

attn_softmax_problem softmax_problem(const Request& request) {
  attn_softmax_problem p = {};
  p.rows = p.queries = request.rows;
  p.columns = request.hidden;
  p.dtype = dtype(request.dtype);
  p.mask_kind = mask(request.mask);
  return p;
}

norm::Shape softmax_forward(const Request& request) {
  norm::SoftmaxForward call = {};
  call.p = softmax_problem(request);
  call.x = memory(1, request.hidden);
  call.y = memory(2, request.hidden);
  if (request.barrier) call.barrier = memory(3, request.hidden).data;
  return shape_of(call);
}

norm::Shape softmax_backward(const Request& request) {
  norm::SoftmaxBackward call = {};
  call.p = softmax_problem(request);
  call.y = memory(1, request.hidden);
  call.dy = memory(2, request.hidden);
  call.dx = memory(3, request.hidden);
  if (request.barrier) call.barrier = memory(4, request.hidden).data;
  return shape_of(call);
}

// Dense rows.
norm::Shape shape(const Request& request) {
  using Make = norm::Shape (*)(const Request&);
  static const std::map<std::string, Make> kOperations = {
      {kLayerBackward, [](const Request& r) { return norm_backward(r, true); }},
      {"layer_forward", [](const Request& r) { return norm_forward(r, true); }},
      {kRmsBackward, [](const Request& r) { return norm_backward(r, false); }},
      {"rms_forward", [](const Request& r) { return norm_forward(r, false); }},
      {"softmax_backward", softmax_backward},
      {"softmax_forward", softmax_forward},
  };
  return known(kOperations, request.operation)(request);
}

struct Call {
  const char* prefix;  // of the kernel's name
  int few_rows;        // of a Shape
  bool on_demand;      // of a Shape
};

constexpr Call kWithBarrier = {"", 0, true};
constexpr Call kCalls[] = {{"dealt_", 0, false},
                           {"dozens_", norm::kDozens, false},
                           {"handful_", norm::kHandful, false},
                           {"hundreds_", norm::kHundreds, false},
                           kWithBarrier};

norm::Shape called(norm::Shape shape, const Call& call) {
  shape.on_demand = call.on_demand;
  shape.few_rows = call.few_rows;
  return shape;
}

norm::Kernels kernels_for(const norm::Shape& shape, const Device& device) {
  return norm::configure(shape, norm::device_traits(device.arch, device.shared_bytes));
}

bool uses_a_barrier(const norm::Shape& shape) {
  const std::vector<Device> all = devices();
  return std::any_of(all.begin(), all.end(), [&](const Device& device) {
    return kernels_for(shape, device).configuration.on_demand != 0;
  });
}

std::string joined(const std::vector<std::string>& texts, const char* between) {
  std::string text;
  for (const std::string& each : texts) text += (text.empty() ? "" : between) + each;
  return text;
}

// The name of a kernel of a request, without its operation's.
std::string traits_of(const Request& request, const norm::Shape& shape, bool columns) {
  std::string name;
  if (!columns && shape.add) name += "_add";
  if (!columns && shape.zero_centred) name += "_zero_centred";
  if (shape.mask == ATTN_SOFTMAX_MASK_EXPLICIT) name += "_explicit";
  if (shape.mask == ATTN_SOFTMAX_MASK_CAUSAL) name += "_causal";
  name += "_" + request.dtype;
  if (request.output != request.dtype) name += "_" + request.output;
  return name + "_" + std::to_string(request.hidden);
}

// A kernel's entry: its operation, its source, and by arch the flags that make it.
std::string entry(const std::string& operation, const norm::Shape& shape, bool columns) {
  std::string source;
  std::map<std::string, std::vector<std::string>> archs_by_flags;
  for (const Device& device : devices()) {
    const norm::Kernels k = kernels_for(shape, device);
    source = columns ? norm::kColumnsSource : k.source;
    std::vector<std::string> flags = columns ? k.columns_flags : k.flags;
    std::sort(flags.begin(), flags.end());
    archs_by_flags[joined(flags, " ")].push_back(device.arch);
  }
  std::vector<std::string> variants;
  for (const auto& [flags, archs] : archs_by_flags) {
    variants.push_back("   \"" + joined(archs, " ") + "\": \"" + flags + "\"");
  }
  std::sort(variants.begin(), variants.end());
  return "{\n  \"operation\": \"" + operation + "\",\n  \"source\": \"" + source +
         "\",\n  \"flags\": {\n" + joined(variants, ",\n") + "\n  }\n }";
}

// All kernels of a request, by name.
void add(std::map<std::string, std::string>& entries, const Request& request) {
  const norm::Shape requested = shape(request);
  const std::string traits = traits_of(request, requested, /*columns=*/false);
  if (request.one_call) {
    entries[request.operation + traits] = entry(request.operation, requested, /*columns=*/false);
    return;
  }
  for (const Call& call : kCalls) {
    const norm::Shape this_call = called(requested, call);
    if (call.few_rows > 0) {
      if (!norm::has_kind(this_call)) continue;
    } else if (!call.on_demand && !uses_a_barrier(called(requested, kWithBarrier))) {
      continue;  // the same with a barrier
    }
    entries[call.prefix + request.operation + traits] =
        entry(request.operation, this_call, /*columns=*/false);
  }
  if (!is_norm_backward(request.operation)) return;
  // One for both kinds.
  const std::string columns = "norm_columns";
  entries[columns + traits_of(request, requested, /*columns=*/true)] =
      entry(columns, called(requested, kWithBarrier), /*columns=*/true);
}

Request parsed(const std::string& line) {
  std::istringstream words(line);
  Request request = {};
  words >> request.operation >> request.dtype >> request.output >> request.hidden >> request.add >>
      request.zero_centred >> request.mask;
  bool complete = !words.fail();
  request.one_call = complete && words >> request.rows;
  if (request.one_call) {
    complete = !(words >> request.barrier).fail();
  } else {
    request.rows = 2;
  }
  words.clear();
  std::string more;
  if (!complete || words >> more) {
    throw std::invalid_argument(
        "want OPERATION DTYPE OUTPUT COLUMNS ADD ZERO_CENTRED MASK [ROWS BARRIER]");
  }
  return request;
}

}  // namespace

int main() {
  std::map<std::string, std::string> entries;
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      add(entries, parsed(line));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "'%s': %s\n", line.c_str(), error.what());
      return 1;
    }
  }
  std::vector<std::string> texts;
  for (const auto& [name, text] : entries) texts.push_back(" \"" + name + "\": " + text);
  std::printf(texts.empty() ? "{}\n" : "{\n%s\n}\n", joined(texts, ",\n").c_str());
}
