// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// launch_probe [NAME=VALUE...]: prints, for every row of the launch table, one line of JSON with
// what CK's host code makes of a problem: kernel arguments and grid. Numbers are as in attn.h;
// pointers are given as numbers, so that the kernels can be run elsewhere on real buffers.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "aiter/launch_table.h"
#include "zstd.h"

namespace {

using aiter_attn::BwdBuffers;
using aiter_attn::CodeObject;
using aiter_attn::Instance;
using aiter_attn::KernelLaunch;
using aiter_attn::Kind;

class Options {
 public:
  Options(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const char* equals = std::strchr(argv[i], '=');
      if (!equals) {
        std::fprintf(stderr, "launch_probe: %s is not NAME=VALUE\n", argv[i]);
        std::exit(1);
      }
      values_[std::string(argv[i], static_cast<size_t>(equals - argv[i]))] = equals + 1;
    }
  }

  int64_t integer(const char* name, int64_t otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::atoll(found->second.c_str());
  }

  double real(const char* name, double otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::atof(found->second.c_str());
  }

  template <typename T>
  T* pointer(const char* name) const {
    return reinterpret_cast<T*>(static_cast<uintptr_t>(integer(name, 0)));
  }

 private:
  std::map<std::string, std::string> values_;
};

attn_problem make_problem(const Options& options, bool group_mode) {
  attn_problem problem{};
  problem.device_type = ATTN_DEVICE_ROCM;
  problem.batch = static_cast<int32_t>(options.integer("batch", 2));
  problem.heads_q = static_cast<int32_t>(options.integer("heads_q", 4));
  problem.heads_k = static_cast<int32_t>(options.integer("heads_k", problem.heads_q));
  problem.head_size_qk = static_cast<int32_t>(options.integer("head_size_qk", 64));
  problem.head_size_v = static_cast<int32_t>(options.integer("head_size_v", problem.head_size_qk));
  problem.seqlen_q = static_cast<int32_t>(options.integer("seqlen_q", 200));
  problem.seqlen_k = static_cast<int32_t>(options.integer("seqlen_k", 300));
  problem.softmax_scale = static_cast<float>(options.real("softmax_scale", 0.125));
  problem.mask = static_cast<int32_t>(options.integer("mask", ATTN_MASK_BOTTOM_RIGHT));
  problem.window_left = static_cast<int32_t>(options.integer("window_left", -1));
  problem.window_right = static_cast<int32_t>(options.integer("window_right", 0));
  if (group_mode) {
    problem.total_q = static_cast<int32_t>(options.integer("total_q", 350));
    problem.total_k = static_cast<int32_t>(options.integer("total_k", 450));
    problem.cu_seqlens_q = options.pointer<const int32_t>("cu_seqlens_q");
    problem.cu_seqlens_k = options.pointer<const int32_t>("cu_seqlens_k");
  }
  return problem;
}

// Contiguous [.., seqlen, heads, size] at the address that the option `name` gives.
attn_tensor contiguous(const Options& options, const char* name, int64_t seqlen, int64_t heads,
                       int64_t size) {
  return {options.pointer<void>(name), seqlen * heads * size, heads * size, size};
}

KernelLaunch launch_fwd(const Options& options, const Instance& instance) {
  attn_fwd_args args{};
  args.struct_size = sizeof(args);
  args.problem = make_problem(options, instance.traits.group_mode);
  const attn_problem& p = args.problem;
  args.q = contiguous(options, "q", p.seqlen_q, p.heads_q, p.head_size_qk);
  args.k = contiguous(options, "k", p.seqlen_k, p.heads_k, p.head_size_qk);
  args.v = contiguous(options, "v", p.seqlen_k, p.heads_k, p.head_size_v);
  args.o = contiguous(options, "o", p.seqlen_q, p.heads_q, p.head_size_v);
  args.lse = options.pointer<float>("lse");
  KernelLaunch launch{};
  instance.make_fwd(args, &launch);
  return launch;
}

KernelLaunch launch_bwd(const Options& options, const Instance& instance) {
  attn_bwd_args args{};
  args.struct_size = sizeof(args);
  args.problem = make_problem(options, instance.traits.group_mode);
  const attn_problem& p = args.problem;
  args.q = contiguous(options, "q", p.seqlen_q, p.heads_q, p.head_size_qk);
  args.k = contiguous(options, "k", p.seqlen_k, p.heads_k, p.head_size_qk);
  args.v = contiguous(options, "v", p.seqlen_k, p.heads_k, p.head_size_v);
  args.o = contiguous(options, "o", p.seqlen_q, p.heads_q, p.head_size_v);
  args.dout = contiguous(options, "dout", p.seqlen_q, p.heads_q, p.head_size_v);
  args.dq = contiguous(options, "dq", p.seqlen_q, p.heads_q, p.head_size_qk);
  args.lse = options.pointer<const float>("lse");
  BwdBuffers buffers{};
  buffers.delta = options.pointer<float>("delta");
  buffers.dq_acc = options.pointer<float>("dq_acc");
  buffers.dk = contiguous(options, "dk", p.seqlen_k, p.heads_q, p.head_size_qk);
  buffers.dv = contiguous(options, "dv", p.seqlen_k, p.heads_q, p.head_size_v);
  KernelLaunch launch{};
  instance.make_bwd(args, buffers, &launch);
  return launch;
}

// Whether the embedded bytes unpack to a code object of the promised size that holds the symbol.
bool unpacks(const CodeObject& object, const char* symbol) {
  std::vector<char> bytes(object.size);
  const size_t size =
      ZSTD_decompress(bytes.data(), bytes.size(), object.packed, object.packed_size);
  return size == object.size && std::memcmp(bytes.data(), "\177ELF", 4) == 0 &&
         std::string(bytes.begin(), bytes.end()).find(symbol) != std::string::npos;
}

void print_row(const Options& options, const Instance& instance) {
  KernelLaunch launch{};
  if (instance.make_fwd) launch = launch_fwd(options, instance);
  if (instance.make_bwd) launch = launch_bwd(options, instance);
  std::printf("{\"name\": \"%s\", \"block_size\": %u, \"grid\": [%u, %u, %u], \"kernarg\": \"",
              instance.name, instance.block_size, launch.grid[0], launch.grid[1], launch.grid[2]);
  for (uint32_t i = 0; i < launch.kernarg_size; ++i) std::printf("%02x", launch.kernarg[i]);
  std::printf("\", \"code_objects\": {");
  for (uint32_t i = 0; i < instance.code_object_count; ++i) {
    const CodeObject& object = instance.code_objects[i];
    std::printf("%s\"%s\": {\"key\": \"%s\", \"sha256\": \"%s\", \"size\": %" PRIu64
                ", \"packed_size\": %" PRIu64 ", \"unpacks\": %s}",
                i ? ", " : "", object.arch, object.key, object.sha256, object.size,
                object.packed_size, unpacks(object, instance.symbol) ? "true" : "false");
  }
  std::printf("}}\n");
}

}  // namespace

int main(int argc, char** argv) {
  const Options options(argc, argv);
  const aiter_attn::LaunchTable& table = aiter_attn::launch_table();
  for (uint32_t i = 0; i < table.instance_count; ++i) print_row(options, table.instances[i]);
  return 0;
}
