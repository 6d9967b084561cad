// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// The thin layer between the row kernels and CUDA or HIP: types, memory, shuffles, barriers,
// bulk copies and clusters. It includes nothing, so that NVRTC, hipRTC and clang need no headers.
#pragma once

#if defined(__HIP__)
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define LAUNCH_BOUNDS(threads, ctas_per_sm) \
  __attribute__((amdgpu_flat_work_group_size(threads, threads)))
#define WARP_SIZE 64
#define HAS_BULK_COPY 0
#define HAS_L2_POLICY 0
#define DYNAMIC_SHARED(name) extern __shared__ __attribute__((aligned(16))) char name[]
#else
#define LAUNCH_BOUNDS(threads, ctas_per_sm) __launch_bounds__(threads, ctas_per_sm)
#define WARP_SIZE 32
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define HAS_BULK_COPY 1
#else
#define HAS_BULK_COPY 0
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define HAS_L2_POLICY 1
#else
#define HAS_L2_POLICY 0
#endif
#define DYNAMIC_SHARED(name) extern __shared__ __align__(128) char name[]
#endif
#if defined(__HIP__)
#define CONSTANT constexpr  // for host and device alike
#else
#define CONSTANT __device__ constexpr
#endif
#define DEVICE __device__ __attribute__((always_inline)) inline

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

// Element types. What they hold is only ever converted to and from float.
struct bf16 {
  u16 bits;
};
struct fp16 {
  u16 bits;
};
struct fp8_e4m3 {
  u8 bits;
};
struct fp8_e5m2 {
  u8 bits;
};
using fp32 = float;

template <class A, class B>
inline constexpr bool same = false;
template <class A>
inline constexpr bool same<A, A> = true;
template <bool, class A, class B>
struct Choose {
  using type = A;
};
template <class A, class B>
struct Choose<false, A, B> {
  using type = B;
};

CONSTANT int least(int a, int b) { return a < b ? a : b; }
CONSTANT int most(int a, int b) { return a > b ? a : b; }
CONSTANT int divided_up(int a, int b) { return (a + b - 1) / b; }

__device__ constexpr u32 INFINITY_BITS = 0x7f800000, NAN_BITS = 0x7fffffff;
DEVICE float as_float(u32 bits) { return __builtin_bit_cast(float, bits); }
DEVICE u32 as_bits(float value) { return __builtin_bit_cast(u32, value); }

/// 32 bits of `high` above `low`, from bit `shift` of `low` on; shift < 32.
DEVICE u32 funnel(u32 low, u32 high, int shift) { return (u32)(((u64)high << 32 | low) >> shift); }

/// `yes` or `no`, by choice_of(which), in one instruction that takes no predicate.
DEVICE u32 choice_of(bool which) { return which ? 0x7654 : 0x3210; }
DEVICE u32 either(u32 no, u32 yes, u32 choice) {
#if defined(__HIP__)
  return choice == choice_of(true) ? yes : no;
#else
  u32 r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(no), "r"(yes), "r"(choice));
  return r;
#endif
}

// --- Numbers -----------------------------------------------------------------------------------

#if defined(__HIP__)
DEVICE float exp2_approx(float v) { return __builtin_amdgcn_exp2f(v); }
DEVICE float max_of(float a, float b) { return __builtin_fmaxf(a, b); }
DEVICE float fused_multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE float inverse_sqrt(float v) { return 1.0f / __builtin_sqrtf(v); }
DEVICE float inverse_approx(float v) { return __builtin_amdgcn_rcpf(v); }
DEVICE float fp16_to_float(u16 v) { return (float)__builtin_bit_cast(_Float16, v); }
DEVICE u16 float_to_fp16(float v) { return __builtin_bit_cast(u16, (_Float16)v); }
#else
DEVICE float exp2_approx(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
DEVICE float max_of(float a, float b) { return fmaxf(a, b); }
DEVICE float fused_multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
DEVICE float inverse_sqrt(float v) { return rsqrtf(v); }
DEVICE float inverse_approx(float v) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
DEVICE float fp16_to_float(u16 v) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(v));
  return r;
}
DEVICE u16 float_to_fp16(float v) {
  u16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v));
  return r;
}
#endif

DEVICE u16 float_to_bf16(float v) {
  u32 bits = as_bits(v);
  if (v != v) return 0x7fff;
  return (u16)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// OCP fp8, rounded to nearest even; finite values beyond the largest become it, infinities too.
template <int EXPONENT_BITS, int MANTISSA_BITS, u32 LARGEST>
DEVICE u8 float_to_fp8(float v) {
  constexpr int BIAS = (1 << (EXPONENT_BITS - 1)) - 1;
  u32 bits = as_bits(v), sign = bits >> 31 << 7, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return (u8)(sign | 0x7f);
  u32 result;
  if (magnitude < ((u32)(127 - BIAS + 1) << 23)) {
    // Subnormal: adding a power of two leaves the rounded mantissa in the lowest bits.
    const float magic = as_float((u32)(127 - BIAS + 1 + 23 - MANTISSA_BITS) << 23);
    result = as_bits(as_float(magnitude) + magic) - as_bits(magic);
  } else {
    constexpr int SHIFT = 23 - MANTISSA_BITS;
    u32 rounded = magnitude + ((1u << (SHIFT - 1)) - 1) + ((magnitude >> SHIFT) & 1);
    result = (rounded >> SHIFT) - ((u32)(127 - BIAS) << MANTISSA_BITS);
  }
  return (u8)(sign | (result > LARGEST ? LARGEST : result));
}

template <class T>
DEVICE u32 bits_of(float v) {
  if constexpr (same<T, fp32>) return as_bits(v);
  if constexpr (same<T, bf16>) return float_to_bf16(v);
  if constexpr (same<T, fp16>) return float_to_fp16(v);
  if constexpr (same<T, fp8_e4m3>) return float_to_fp8<4, 3, 0x7e>(v);
  if constexpr (same<T, fp8_e5m2>) return float_to_fp8<5, 2, 0x7b>(v);
}

/// Bits of two neighbours, `low` at the lower address; T has 16 bits.
template <class T>
DEVICE u32 pair_of(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  u32 r;
  if constexpr (same<T, bf16>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  }
  return r;
#else
  return bits_of<T>(low) | bits_of<T>(high) << 16;
#endif
}

// --- Vectors of elements -----------------------------------------------------------------------

struct alignas(16) Quad {
  u32 x, y, z, w;
};

/// V neighbours of type T as they lie in memory, moved in the widest accesses that they allow.
template <class T, int V>
struct alignas(least(16, (int)sizeof(T) * V)) Pack {
  static constexpr int BYTES = (int)sizeof(T) * V;
  using Word = typename Choose<(BYTES >= 4), u32, typename Choose<BYTES == 2, u16, u8>::type>::type;
  static constexpr int WORDS = BYTES / (int)sizeof(Word);
  Word word[WORDS];

#if defined(__HIP__)
  // Word by word: a whole that is either loaded or zero would go through scratch memory.
  DEVICE Pack() = default;
  DEVICE Pack(const Pack& from) { *this = from; }
  DEVICE Pack& operator=(const Pack& from) {
#pragma unroll
    for (int i = 0; i < WORDS; i++) word[i] = from.word[i];
    return *this;
  }
#endif

  DEVICE float get(int i) const {
    if constexpr (same<T, fp32>) return as_float(word[i]);
    if constexpr (same<T, bf16>) {
      if constexpr (sizeof(Word) == 2) return as_float((u32)word[i] << 16);
      return as_float(i & 1 ? word[i / 2] & 0xffff0000u : (u32)word[i / 2] << 16);
    }
    if constexpr (same<T, fp16>) {
      if constexpr (sizeof(Word) == 2) return fp16_to_float((u16)word[i]);
      return fp16_to_float((u16)(i & 1 ? word[i / 2] >> 16 : word[i / 2] & 0xffff));
    }
    if constexpr (same<T, u8>) {
      constexpr int PER_WORD = (int)sizeof(Word);
      return (float)((word[i / PER_WORD] >> (8 * (i % PER_WORD))) & 0xff);
    }
  }

  DEVICE void set(const float (&v)[V]) {
    constexpr int PER_WORD = (int)(sizeof(Word) / sizeof(T));
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
      if constexpr (PER_WORD == 1) word[i] = (Word)bits_of<T>(v[i]);
      if constexpr (PER_WORD == 2 && sizeof(T) == 2) word[i] = pair_of<T>(v[2 * i], v[2 * i + 1]);
      if constexpr (sizeof(T) == 1 && PER_WORD > 1) {
        Word bits = 0;
#pragma unroll
        for (int j = 0; j < PER_WORD; j++) bits |= bits_of<T>(v[PER_WORD * i + j]) << (8 * j);
        word[i] = bits;
      }
    }
  }

  DEVICE void clear() {
#pragma unroll
    for (int i = 0; i < WORDS; i++) word[i] = 0;
  }

  /// Some of the elements at `from`, the others zero: those of `first` to `end` - 1.
  DEVICE void read(const T* from, int first, int end) {
    clear();
#pragma unroll
    for (int i = 0; i < V; i++)
      if (i >= first && i < end) {
        if constexpr (sizeof(T) == 4) word[i] = *(const u32*)(from + i);
        if constexpr (sizeof(T) == 2) word[i / 2] |= (u32) * (const u16*)(from + i) << i % 2 * 16;
        if constexpr (sizeof(T) == 1) word[i / 4] |= (u32) * (const u8*)(from + i) << i % 4 * 8;
      }
  }
  /// Elements `at` to `at` + V - 1 of the `count` at `from`, wherever they lie; the others are
  /// zero. Of two packs of memory where the `count` have all of both.
  DEVICE void gather(const T* from, int at, int count) {
    const int off = (int)((u64)(from + at) / sizeof(T)) & (V - 1);
    const int first = at - off;
    if (first < 0 || first + 2 * V > count) {
      read(from + at, -at, count - at);
      return;
    }
    between(*(const Pack*)(from + first), *(const Pack*)(from + first + V), off);
  }
  /// Elements `off` to `off` + V - 1 of those of `low` and, behind them, `high`; off < V. PERMUTED:
  /// by either(), which can be faster.
  template <bool PERMUTED = false>
  DEVICE void between(const Pack& low, const Pack& high, int off) {
    Word both[2 * WORDS];
#pragma unroll
    for (int i = 0; i < WORDS; i++) both[i] = low.word[i], both[WORDS + i] = high.word[i];
    const int bytes = off * (int)sizeof(T);
#pragma unroll
    for (int step = WORDS / 2; step; step /= 2) {
      const bool moved = bytes & (4 * step);
#pragma unroll
      for (int i = 0; i + step < 2 * WORDS; i++) {
        if constexpr (PERMUTED)
          both[i] = (Word)either(both[i], both[i + step], choice_of(moved));
        else if (moved)
          both[i] = both[i + step];
      }
    }
#pragma unroll
    for (int i = 0; i < WORDS; i++)
      word[i] = sizeof(T) < 4 ? funnel(both[i], both[i + 1], bytes % 4 * 8) : both[i];
  }
  /// Makes all but those of `first` to `end` - 1 zero. T has 16 or 32 bits.
  DEVICE void keep(int first, int end) {
#pragma unroll
    for (int i = 0; i < V; i++)
      if (i < first || i >= end)
        word[i * (int)sizeof(T) / 4] &= sizeof(T) == 4 ? 0 : 0xffff0000u >> i % 2 * 16;
  }
  /// Writes element `i` alone. T has 16 or 32 bits.
  DEVICE void write_one(T* to, int i) const {
    Word left[WORDS];  // not word[...]: that would go through local memory
#pragma unroll
    for (int w = 0; w < WORDS; w++) left[w] = word[w];
#pragma unroll
    for (int step = WORDS / 2; step; step /= 2)
#pragma unroll
      for (int w = 0; w < step; w++)
        if (i * (int)sizeof(T) / 4 & step) left[w] = left[w + step];
    if constexpr (sizeof(T) == 4) *(u32*)to = left[0];
    if constexpr (sizeof(T) == 2) *(u16*)to = (u16)(left[0] >> i % 2 * 16);
  }
  /// Writes those of `first` to `end` - 1.
  DEVICE void write(T* to, int first, int end) const {
#pragma unroll
    for (int i = 0; i < V; i++)
      if (i >= first && i < end) {
        if constexpr (sizeof(T) == 4) *(u32*)(to + i) = word[i];
        if constexpr (sizeof(T) == 2) *(u16*)(to + i) = (u16)(word[i / 2] >> i % 2 * 16);
        if constexpr (sizeof(T) == 1) *(u8*)(to + i) = (u8)(word[i / 4] >> i % 4 * 8);
      }
  }
};

/// Stops the compiler from keeping what it computed from `pack` so far (converted elements, above
/// all): converting again costs an instruction, keeping costs a register. `zero` is 0, and the
/// compiler must not be able to know that of any of its bits.
template <class P>
DEVICE P opaque(P pack, u32 zero) {
#pragma unroll
  for (int i = 0; i < P::WORDS; i++) pack.word[i] ^= (typename P::Word)zero;
  return pack;
}

// --- Loads that tell L2 what to keep (compute capability 8.0) -----------------------------------

struct L2Policy {
  u64 bits;
};
/// For lines that leave L2 after others or, if not `last`, in the order in which they were used.
DEVICE L2Policy evict_last(bool last) {
  L2Policy policy{0};
#if HAS_L2_POLICY
  if (last)
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy.bits));
  else
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy.bits));
#endif
  return policy;
}

/// The pack of type P at `from`.
template <class P>
DEVICE P load(const void* from, L2Policy policy) {
#if HAS_L2_POLICY
  if constexpr (P::BYTES % 16 == 0) {
    P pack;
#pragma unroll
    for (int i = 0; i < P::WORDS; i += 4)
      asm volatile("ld.global.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %5;"
                   : "=r"(pack.word[i]), "=r"(pack.word[i + 1]), "=r"(pack.word[i + 2]),
                     "=r"(pack.word[i + 3])
                   : "l"((const char*)from + 4 * i), "l"(policy.bits));
    return pack;
  }
#endif
  return *(const P*)from;
}

// --- Threads -----------------------------------------------------------------------------------

#if defined(__HIP__)
DEVICE int thread_index() { return (int)__builtin_amdgcn_workitem_id_x(); }
DEVICE int block_index() { return (int)__builtin_amdgcn_workgroup_id_x(); }
DEVICE int block_index_y() { return (int)__builtin_amdgcn_workgroup_id_y(); }
DEVICE int lane_index() { return thread_index() & (WARP_SIZE - 1); }
DEVICE float shuffle_xor(float v, int mask) {
  return as_float((u32)__builtin_amdgcn_ds_bpermute((lane_index() ^ mask) * 4, (int)as_bits(v)));
}
DEVICE float shuffle_from(float v, int lane, int width) {
  int source = (lane_index() & ~(width - 1)) | lane;
  return as_float((u32)__builtin_amdgcn_ds_bpermute(source * 4, (int)as_bits(v)));
}
DEVICE void block_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
DEVICE void warp_barrier() { __builtin_amdgcn_wave_barrier(); }
DEVICE void atomic_max_of_positive(float* to, float v) {
  __hip_atomic_fetch_max((u32*)to, as_bits(v), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
#else
DEVICE int thread_index() { return (int)threadIdx.x; }
DEVICE int block_index() { return (int)blockIdx.x; }
DEVICE int block_index_y() { return (int)blockIdx.y; }
DEVICE int lane_index() { return (int)threadIdx.x & 31; }
DEVICE float shuffle_xor(float v, int mask) { return __shfl_xor_sync(~0u, v, mask); }
DEVICE float shuffle_from(float v, int lane, int width) { return __shfl_sync(~0u, v, lane, width); }
DEVICE void block_barrier() { __syncthreads(); }
DEVICE void warp_barrier() { __syncwarp(); }
DEVICE void atomic_max_of_positive(float* to, float v) { atomicMax((u32*)to, as_bits(v)); }
#endif

/// Barrier among `threads` threads of the block, whole warps; `id` tells such groups apart.
template <int THREADS, int OF>
DEVICE void group_barrier(int id) {
  if constexpr (THREADS == OF) {
    block_barrier();
  } else {
#if defined(__HIP__)
    static_assert(THREADS <= WARP_SIZE, "a workgroup of this architecture has one barrier");
    warp_barrier();
#else
    asm volatile("bar.sync %0, %1;" ::"r"(id + 1), "n"(THREADS) : "memory");
#endif
  }
}

#if defined(__HIP__)
// Controls of DPP, by which a lane reads another one's register without a trip through LDS.
constexpr int QUAD_SWAP_1 = 0xb1, QUAD_SWAP_2 = 0x4e;         // lanes i ^ 1 and i ^ 2
constexpr int MIRROR_8 = 0x141, MIRROR_16 = 0x140;            // within groups of 8 and 16 lanes
constexpr int LAST_OF_ROW = 0x142, LAST_OF_TWO_ROWS = 0x143;  // of 16 lanes each, to the next ones

/// `v` of the lane that CONTROL names; rows of 16 lanes without their bit in ROWS get `rest`.
template <int CONTROL, int ROWS = 0xf>
DEVICE float moved(float v, float rest) {
  return as_float((u32)__builtin_amdgcn_update_dpp((int)as_bits(rest), (int)as_bits(v), CONTROL,
                                                   ROWS, 0xf, ROWS == 0xf));
}
/// Reduces groups of LANES neighbours; all of a group get the same bits. `neutral` changes nothing.
template <int LANES, class Operation>
DEVICE float warp_reduce(float v, float neutral, Operation operation) {
  if constexpr (LANES > 1) v = operation(v, moved<QUAD_SWAP_1>(v, neutral));
  if constexpr (LANES > 2) v = operation(v, moved<QUAD_SWAP_2>(v, neutral));
  // The lanes of a quad are equal by now, then those of a group of 8: mirrors swap such groups.
  if constexpr (LANES > 4) v = operation(v, moved<MIRROR_8>(v, neutral));
  if constexpr (LANES > 8) v = operation(v, moved<MIRROR_16>(v, neutral));
  if constexpr (LANES == 32) v = operation(v, shuffle_xor(v, 16));
  if constexpr (LANES == 64) {
    v = operation(v, moved<LAST_OF_ROW, 0xa>(v, neutral));
    v = operation(v, moved<LAST_OF_TWO_ROWS, 0xc>(v, neutral));
    v = as_float((u32)__builtin_amdgcn_readlane((int)as_bits(v), 63));
  }
  return v;
}
template <int LANES>
DEVICE float warp_sum(float v) {
  return warp_reduce<LANES>(v, 0.0f, [](float a, float b) { return a + b; });
}
template <int LANES>
DEVICE float warp_max(float v) {
  return warp_reduce<LANES>(v, -as_float(INFINITY_BITS), max_of);
}
#else
template <int LANES>
DEVICE float warp_sum(float v) {
#pragma unroll
  for (int mask = LANES / 2; mask; mask /= 2) v += shuffle_xor(v, mask);
  return v;
}
template <int LANES>
DEVICE float warp_max(float v) {
#pragma unroll
  for (int mask = LANES / 2; mask; mask /= 2) v = max_of(v, shuffle_xor(v, mask));
  return v;
}
#endif

// --- Barriers in shared memory, bulk copies, clusters (compute capability 9.0) -------------------

#if HAS_BULK_COPY
DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
DEVICE void barrier_init(u32 barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
DEVICE void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// This thread's arrival, after all that it did to shared memory.
DEVICE void barrier_arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
}
DEVICE void barrier_expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
/// Until the phase has ended. What comes by it lies in this CTA's shared memory, so acquiring it
/// for the CTA is enough; for the cluster would empty L1.
DEVICE void barrier_wait(u32 barrier, u32 parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra.uni finished;\n"
      "bra.uni again;\n"
      "finished:\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
DEVICE void bulk_copy(u32 to_shared, const void* from, u32 bytes, u32 barrier, L2Policy policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1], %2, [%3], %4;" ::"r"(to_shared),
      "l"(from), "r"(bytes), "r"(barrier), "l"(policy.bits)
      : "memory");
}
/// What this thread read from shared memory stays ahead of bulk copies that come after a barrier.
DEVICE void reads_before_bulk_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
DEVICE int cluster_rank() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// Releases nothing but, after barrier_init_fence, barriers: a release would wait for every load.
DEVICE void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
DEVICE u32 address_in(u32 shared, int cta) {
  u32 mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(shared), "r"(cta));
  return mapped;
}
DEVICE void send(u32 to, float v, u32 barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to),
      "r"(as_bits(v)), "r"(barrier)
      : "memory");
}
DEVICE void send(u32 to, float a, float b, u32 barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(
          to),
      "r"(as_bits(a)), "r"(as_bits(b)), "r"(barrier)
      : "memory");
}
/// Adds 1 to `counter`; what it was before.
DEVICE u32 count_up(u32* counter) { return atomicAdd(counter, 1u); }
/// As count_up, ordered after all that this thread did to memory and before what it does next.
DEVICE u32 count_up_in_order(u32* counter) {
  u32 before;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(counter)
               : "memory");
  return before;
}
#endif

/// A dependent launch may start once every CTA of this grid has called this or ended.
DEVICE void let_dependents_start() {
#if HAS_BULK_COPY
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/// Until the grid that this one depends on has ended; nothing without such a grid.
DEVICE void wait_for_previous_grid() {
#if HAS_BULK_COPY
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// Ahead of all that a kernel reads or writes in device memory. Dependents start when this grid may
/// work, not when it is there: as long as they wait, they hold places that others could have.
DEVICE void begin() {
  wait_for_previous_grid();
  let_dependents_start();
}
