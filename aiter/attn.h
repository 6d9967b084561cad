/* Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
 *
 * The C ABI of aiter-attn: fused attention, forward and backward, in batch and group (varlen) mode.
 *
 * Rules that hold for every function here
 *   - It returns an attn_status. On anything but ATTN_OK attn_last_error() has the reason, for the
 *     calling thread, until that thread's next call. Texts are UTF-8.
 *   - Every struct except attn_tensor starts with struct_size = sizeof(the struct as the caller was
 *     compiled), and grows at its end, for itself: no struct but attn_tensor lies inside another.
 *     Zero means "as before the field existed". So an older caller is served, and a newer caller
 *     is served as long as the fields that this library does not know are zero, else refused with
 *     ATTN_ERROR_ABI_MISMATCH. Structs of more than 64 KiB are refused, as are sizes that are no
 *     multiple of a pointer's, 8.
 *   - A property of every call (dropout, a bias, a soft cap) is in attn_problem or an args struct,
 *     at its end. Another way of computing (split keys, paged keys, appending to a cache) gets an
 *     args struct and functions of its own, never fields of attn_fwd_args.
 *   - No pointer is kept after the call. GPU work is queued on `stream` and not waited for.
 *   - A process may fork at any time. On the CPU its child can do all that it could itself; on the
 *     GPU the child of a process that had opened the runtime gets ATTN_ERROR_DRIVER.
 *   - Names are written attn_*; the linker sees NAMESPACE_attn_* (build setting //aiter:namespace),
 *     so that two copies of the library can live in one process.
 */
#ifndef AITER_ATTN_H_
#define AITER_ATTN_H_

#include <stddef.h>
#include <stdint.h>

#ifndef AITER_ATTN_NAMESPACE
#define AITER_ATTN_NAMESPACE aiter
#endif
#define ATTN_PASTE_(ns, name) ns##_attn_##name
#define ATTN_PASTE(ns, name) ATTN_PASTE_(ns, name)
#define ATTN_SYMBOL(name) ATTN_PASTE(AITER_ATTN_NAMESPACE, name)

#define attn_abi_version ATTN_SYMBOL(abi_version)
#define attn_version ATTN_SYMBOL(version)
#define attn_last_error ATTN_SYMBOL(last_error)
#define attn_last_error_field ATTN_SYMBOL(last_error_field)
#define attn_last_error_index ATTN_SYMBOL(last_error_index)
#define attn_fwd ATTN_SYMBOL(fwd)
#define attn_fwd_workspace_size ATTN_SYMBOL(fwd_workspace_size)
#define attn_bwd ATTN_SYMBOL(bwd)
#define attn_bwd_workspace_size ATTN_SYMBOL(bwd_workspace_size)
#define attn_dropout_mask ATTN_SYMBOL(dropout_mask)
#define attn_kvcache_fwd ATTN_SYMBOL(kvcache_fwd)
#define attn_kvcache_fwd_workspace_size ATTN_SYMBOL(kvcache_fwd_workspace_size)
#define attn_append_kv ATTN_SYMBOL(append_kv)
#define attn_plan_fwd ATTN_SYMBOL(plan_fwd)
#define attn_plan_bwd ATTN_SYMBOL(plan_bwd)
#define attn_plan_kvcache_fwd ATTN_SYMBOL(plan_kvcache_fwd)
#define attn_plan_append_kv ATTN_SYMBOL(plan_append_kv)
#define attn_explain_fwd ATTN_SYMBOL(explain_fwd)
#define attn_explain_bwd ATTN_SYMBOL(explain_bwd)
#define attn_explain_kvcache_fwd ATTN_SYMBOL(explain_kvcache_fwd)
#define attn_explain_append_kv ATTN_SYMBOL(explain_append_kv)
#define attn_kernel_count ATTN_SYMBOL(kernel_count)
#define attn_kernel_info ATTN_SYMBOL(kernel_info)
#define attn_code_object ATTN_SYMBOL(code_object)
#define attn_code_object_free ATTN_SYMBOL(code_object_free)
#define attn_fetch_code_object ATTN_SYMBOL(fetch_code_object)
#define attn_find_code_object ATTN_SYMBOL(find_code_object)
#define attn_set_cache_dir ATTN_SYMBOL(set_cache_dir)
#define attn_cache_dir ATTN_SYMBOL(cache_dir)
#define attn_warm_up ATTN_SYMBOL(warm_up)
#define attn_warm_up_wait ATTN_SYMBOL(warm_up_wait)
#define attn_driver_info ATTN_SYMBOL(driver_info)
#define attn_set_interrupt ATTN_SYMBOL(set_interrupt)
#define attn_set_kernels ATTN_SYMBOL(set_kernels)

#if defined(__GNUC__)
#define ATTN_API __attribute__((visibility("default")))
#else
#define ATTN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a field changes its meaning or a function its signature; appending fields does not
 * raise it. */
#define ATTN_ABI_VERSION 1u

typedef enum attn_status {
  ATTN_OK = 0,
  /* a value that no build of this library would accept */
  ATTN_ERROR_INVALID_ARGUMENT = 1,
  /* valid, but no kernel (or no arch) in this build serves it */
  ATTN_ERROR_UNSUPPORTED = 2,
  /* a struct_size is short or absurd, or unknown fields are set */
  ATTN_ERROR_ABI_MISMATCH = 3,
  /* the GPU runtime is absent or failed */
  ATTN_ERROR_DRIVER = 4,
  ATTN_ERROR_OUT_OF_MEMORY = 5,
  /* a code object does not have its digest */
  ATTN_ERROR_CORRUPT = 6,
  ATTN_ERROR_INTERNAL = 7,
  /* the callback of attn_set_interrupt asked to stop; the outputs are undefined */
  ATTN_ERROR_INTERRUPTED = 8
} attn_status;

/* The place of the data. The numbers equal DLPack's kDLCPU, kDLCUDA and kDLROCM. */
typedef enum attn_device_type {
  ATTN_DEVICE_CPU = 1,  /* host memory: the CPU reference */
  ATTN_DEVICE_CUDA = 2, /* memory of an NVIDIA GPU: norms alone (norm.h) */
  ATTN_DEVICE_ROCM = 10 /* memory of an AMD GPU: HIP */
} attn_device_type;

typedef enum attn_dtype {
  ATTN_DTYPE_FP16 = 1,
  ATTN_DTYPE_BF16 = 2,
  ATTN_DTYPE_FP32 = 3, /* attention: CPU reference only, and o_dtype */
  /* OCP fp8, for outputs of norms (norm.h). Values beyond the largest number become it,
   * infinities too. */
  ATTN_DTYPE_FP8_E4M3 = 4, /* no infinity, largest 448; attn_fwd: on the CPU and from gfx950 on */
  ATTN_DTYPE_FP8_E5M2 = 5, /* largest 57344; norms only */
  /* attn_fwd only, on the CPU and on archs before gfx950: no infinity, no negative zero, whose bits
   * are NaN; largest 240. Values beyond become it, too. */
  ATTN_DTYPE_FP8_E4M3_FNUZ = 6
} attn_dtype;

/* The contiguous dimension of v. */
typedef enum attn_v_layout {
  ATTN_V_ROWS = 0, /* the elements of a head, as in the other tensors */
  /* fp8 in batch mode: the keys. v is [batch, heads_k, head_size_v, seqlen_k], and its stride_seq
   * is from element to element of a head. */
  ATTN_V_COLUMNS = 1
} attn_v_layout;

/* The layout of tensors in memory. 0 is no mode, so that it cannot be forgotten. */
typedef enum attn_mode {
  ATTN_MODE_BATCH = 1, /* equal lengths: [batch, seqlen, heads, head_size] */
  ATTN_MODE_GROUP = 2  /* lengths by cu_seqlens: [total, heads, head_size] */
} attn_mode;

/* The diagonal that windows are counted from. With window_left = -1 and window_right = 0 this is
 * the causal mask. Windows are exact at any length: flash-attn 2 takes one of seqlen_k keys or more
 * for -1, which with seqlen_q > seqlen_k lets queries see keys that the window does not reach. */
typedef enum attn_mask {
  ATTN_MASK_NONE = 0,        /* windows are ignored and must be -1 */
  ATTN_MASK_TOP_LEFT = 1,    /* query i sits at key i */
  ATTN_MASK_BOTTOM_RIGHT = 2 /* query i sits at key i + seqlen_k - seqlen_q, as in flash-attn */
} attn_mask;

/* The term that is added to the scores, after softmax_scale and the cap. */
typedef enum attn_bias {
  ATTN_BIAS_NONE = 0,
  ATTN_BIAS_ELEMENTWISE = 1, /* a number of its own for every score */
  /* -slope * |distance of the key from the diagonal|, which is the mask's; without a mask the
   * bottom-right one. With the causal mask (window_left = -1, window_right = 0) it is slope * key
   * instead, as in flash-attn: o is the same, lse greater by slope * diagonal. */
  ATTN_BIAS_ALIBI = 2
} attn_bias;

/* The provider of the kernels that serve a call on the GPU, where a build has those of several: for
 * attn_fwd and attn_bwd. */
typedef enum attn_kernels {
  /* attn_set_kernels's; without, what the environment variable AITER_ATTN_KERNELS names at the
   * first call; without, the fastest */
  ATTN_KERNELS_DEFAULT = 0,
  ATTN_KERNELS_FASTEST = 1, /* AITER's assembly where AITER takes it, else Composable Kernel's */
  ATTN_KERNELS_CK = 2,      /* Composable Kernel's */
  /* AITER's assembly; calls that it does not serve are refused. Group mode without a mask is
   * served, too: there every sequence with queries must have a key. */
  ATTN_KERNELS_ASM = 3
} attn_kernels;

/* The rounding of probabilities, and in attn_bwd of gradients, to bf16 in AITER's assembly; to fp16
 * it rounds toward zero alone. Composable Kernel's kernels round to nearest, ties to even. */
typedef enum attn_rounding {
  ATTN_ROUNDING_NEAREST_EVEN = 0,
  ATTN_ROUNDING_NEAREST_AWAY = 1, /* ties away from zero */
  ATTN_ROUNDING_TOWARD_ZERO = 2
} attn_rounding;

/* A tensor, laid out as attn_mode says; group mode ignores stride_batch. Strides are in elements;
 * the head_size dimension is contiguous; the stride of a dimension with one entry is ignored.
 * Outputs (lse and the workspace too) share no byte with anything else of the call, nor with
 * themselves; parts of one buffer that interleave without sharing a byte are fine. On the GPU
 * strides are from 0 to 2^31 - 1, and data and strides are multiples of 16 bytes, unless the chosen
 * kernel takes less. data may be NULL where the tensor has no entry. This struct is frozen. */
typedef struct attn_tensor {
  void* data;
  int64_t stride_batch;
  int64_t stride_seq;
  int64_t stride_head;
} attn_tensor;

/* The part that all passes share. */
typedef struct attn_problem {
  uint32_t struct_size;
  int32_t mode;        /* attn_mode */
  int32_t device_type; /* attn_device_type */
  int32_t device_id;   /* HIP device ordinal; 0 for the CPU */
  void* stream;        /* hipStream_t; NULL is the default stream; ignored on the CPU */
  int32_t dtype;       /* attn_dtype of q, k, v, o and their gradients, but for o_dtype below */
  int32_t batch;
  int32_t heads_q;
  int32_t heads_k; /* divides heads_q */
  int32_t head_size_qk;
  int32_t head_size_v;
  int32_t seqlen_q; /* batch mode: the length; group mode: the greatest one */
  int32_t seqlen_k;
  int32_t total_q; /* group mode: sum of lengths; batch mode: 0 */
  int32_t total_k; /* the same of the keys */
  /* Group mode: [batch + 1], in the memory of device_type; batch mode: NULL. */
  const int32_t* cu_seqlens_q;
  const int32_t* cu_seqlens_k;
  float softmax_scale;  /* positive and finite */
  int32_t mask;         /* attn_mask */
  int32_t window_left;  /* keys to the left of the diagonal that are seen; -1: all */
  int32_t window_right; /* those to the right; -1: all */
  int32_t bias;         /* attn_bias */
  /* c > 0: a scaled score s becomes c * tanh(s / c), ahead of the bias. 0: no cap. On the GPU
   * forward only. */
  float logits_soft_cap;
  /* The probability with which a weight is dropped, from 0 to below 1; those that stay are divided
   * by 1 - dropout_p. lse is that of all weights. attn_dropout_mask says which stay: that depends
   * on seed and offset below, and on a weight's batch entry, head, query and key. */
  float dropout_p;
  uint32_t reserved; /* 0 */
  uint64_t dropout_seed;
  /* Head h of batch entry b has the offsets from dropout_offset + (b * heads_q + h) * 64 on: add
   * batch * heads_q * 64 for other numbers with the same seed. */
  uint64_t dropout_offset;
  /* {seed, offset} in the memory of device_type, read when the call computes: on a GPU when its
   * kernels run. The two numbers above are 0 then. NULL: they are meant. */
  const uint64_t* rng_state;
  /* attn_kernels and attn_rounding: on the CPU neither matters. A rounding that is not 0 is for
   * attn_fwd and attn_bwd, and needs a kernel of AITER's: without one the call is refused. */
  int32_t kernels;
  int32_t rounding;
  /* Padded sequences: how many rows of each are used, from its first one on: [batch], in the memory
   * of device_type. NULL: all. Other rows are padding: of no tensor are they read or written, nor
   * of lse. Group mode: cu_seqlens say where sequences begin, and seqlen_q and seqlen_k are the
   * greatest numbers of used rows. For attn_fwd, attn_bwd and attn_dropout_mask; over a cache
   * seqlens_k says it. On the GPU in group mode alone, but for the sums below. */
  const int32_t* seqused_q;
  const int32_t* seqused_k;
  /* The same as sums: [batch + 1], from 0 on: sequence b uses its first cu_seqused_q[b + 1] -
   * cu_seqused_q[b] rows. Of a side's two arrays one is given at most. On the GPU attn_fwd takes
   * them in batch mode, too. */
  const int32_t* cu_seqused_q;
  const int32_t* cu_seqused_k;
} attn_problem;

/* A bias of scores. Elementwise: of the problem's dtype, [batch, heads_q, seqlen_q, seqlen_k], in
 * group mode [heads_q, total_q, seqlen_k] (seqlen_k is the greatest length, and stride_batch is
 * ignored). Keys are contiguous; a stride of 0 repeats what lies there. ALiBi: fp32 slopes,
 * [heads_q], or with alibi_stride_batch > 0 [batch, heads_q]. On the GPU alibi_stride_batch is at
 * most 2^31 - 1. With fp8 an elementwise bias is fp32. */

/* A sink of attention: fp32 [heads_q], NULL: none. sink[h] is one more score of every query of head
 * h, after scale, soft cap and bias, of a key whose value is 0: it is in the softmax's denominator
 * and in lse. -inf is as none, +inf is not allowed. Dropout does not drop it. A row with no key
 * gives o = 0 and lse = sink[h]. Backward takes the o and lse of forward with the sink, and from
 * them alone gives the gradients of q, k, v and the bias. On the GPU a kernel of this library's
 * scales o, of the problem's dtype, once it has been written, and it takes no fp8
 * (docs/semantics.md). */

/* o = softmax(softmax_scale * q k^T + bias + mask) v; lse = log sum exp of the masked scores
 * (natural log). A row with no key gives o = 0 and lse = -inf. */
typedef struct attn_fwd_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const attn_problem* problem;
  attn_tensor q, k, v, o;
  /* fp32, contiguous, [batch, heads_q, seqlen_q] or [heads_q, total_q]; NULL: not wanted. */
  float* lse;
  attn_tensor bias;           /* with ATTN_BIAS_ELEMENTWISE, else zero */
  const float* alibi_slopes;  /* with ATTN_BIAS_ALIBI, else NULL */
  int64_t alibi_stride_batch; /* with ATTN_BIAS_ALIBI, else 0 */
  /* Group mode: sequences of this many queries or fewer are left out: their o and lse stay as they
   * are. 0: none is. */
  int32_t min_seqlen_q;
  int32_t v_layout; /* attn_v_layout; on the GPU ATTN_V_COLUMNS where o is fp8, else ATTN_V_ROWS */
  /* fp8: the scales of elements. Those of q, k, v times their descale are the numbers that
   * attention is computed of, and an o of fp8 holds the result times scale_o. Positive and finite;
   * 1 where elements are the numbers. Zero without fp8; scale_o too where o_dtype is set. */
  float descale_q;
  float descale_k;
  float descale_v;
  float scale_o;
  /* attn_fwd_workspace_size bytes on the device, 256-byte aligned: the place of an lse that is not
   * wanted, where the build has only kernels that write one, or where there is a sink. NULL: such a
   * call is refused. */
  void* workspace;
  uint64_t workspace_size;
  const float* sink;
  /* attn_dtype of o. 0: the problem's dtype. With fp8 also ATTN_DTYPE_BF16 or ATTN_DTYPE_FP32: o
   * holds the result itself. */
  int32_t o_dtype;
  uint32_t reserved2; /* 0 */
} attn_fwd_args;

/* Dimensions that dbias is summed over, where one entry of the bias serves all of one: or'ed. */
typedef enum attn_dbias_sum {
  ATTN_DBIAS_SUM_BATCH = 1, /* batch mode only */
  ATTN_DBIAS_SUM_HEADS = 2,
  ATTN_DBIAS_SUM_QUERIES = 4 /* in group mode those of all sequences */
} attn_dbias_sum;

/* Gradients of attn_fwd. dk and dv have heads_k heads: the sum over their group of query heads. */
typedef struct attn_bwd_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const attn_problem* problem;
  attn_tensor q, k, v, o, dout;
  const float* lse; /* as attn_fwd wrote it */
  attn_tensor dq, dk, dv;
  /* attn_bwd_workspace_size bytes on the device, 256-byte aligned; NULL where the size is 0. */
  void* workspace;
  uint64_t workspace_size;
  attn_tensor bias; /* as attn_fwd got it */
  const float* alibi_slopes;
  int64_t alibi_stride_batch;
  /* With bias_grad, the gradient of every score: as an elementwise bias, without repeats, 0 where
   * the mask lets a query not see the key. In group mode keys beyond a sequence's own length give 0
   * too. dbias_sums says where it is summed instead, as the gradient of a bias that was repeated
   * is: it has one entry there. */
  attn_tensor dbias;
  int32_t bias_grad; /* 1: dbias is wanted; 0: not */
  /* 1: dq is summed in a fixed order, so that the same call gives the same bits; takes more
   * workspace on the GPU. 0: in any order there. The CPU's order is always fixed. */
  int32_t deterministic;
  /* attn_dbias_sum; without bias_grad 0. On the GPU the gradient of every score is rounded to
   * dtype, and lies in the workspace, before it is summed in fp32. */
  int32_t dbias_sums;
  uint32_t reserved2; /* 0 */
  const float* sink;  /* as attn_fwd got it */
  /* fp32 [heads_q]: the gradient of sink, summed in a fixed order. NULL: not wanted. */
  float* dsink;
} attn_bwd_args;

/* The weights that dropout keeps, in a call of the same problem. kept is contiguous,
 * [batch, heads_q, seqlen_q, seqlen_k], in group mode [heads_q, total_q, seqlen_k]: 1 where a
 * weight stays, 0 where it is dropped, and in group mode 0 for keys beyond a sequence's own. */
typedef struct attn_dropout_mask_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const attn_problem* problem;
  uint8_t* kept;
} attn_dropout_mask_args;

/* The place of each sequence's keys and values. They lie in a key-value cache, which has room for
 * more than is in use:
 *   - in place (page_size = 0): k and v are [entries, seqlen_k, heads_k, head_size], seqlen_k being
 *     the room, and batch entry b has entry batch_index[b], or b where batch_index is NULL;
 *   - in pages, k and v are [entries, page_size, heads_k, head_size], entries being all pages:
 *     stride_batch is from page to page, in group mode too. Either page j of sequence b is
 *     block_table[b * block_table_stride + j]; or, with page_size = 1, key j of sequence b is at
 *     page page_indices[page_indptr[b] + j] (SGLang's page list).
 * All arrays of numbers are in the memory of device_type. The library reads none on a GPU: there
 * the caller must keep every length and every page number in range, and have 159 further entries in
 * page_indices, of pages with finite numbers: kernels read them. */
typedef struct attn_kvcache {
  uint32_t struct_size;
  int32_t entries; /* that k and v have: sequences, or pages */
  /* [batch]: keys of each sequence, at most seqlen_k. NULL: seqlen_k of all; in group mode the
   * differences of the problem's cu_seqlens_k; with page_indptr its differences. */
  const int32_t* seqlens_k;
  const int32_t* batch_index; /* [batch]: in place only */
  int32_t page_size;          /* keys in a page; 0: in place */
  uint32_t reserved;          /* 0 */
  const int32_t* block_table; /* [batch, block_table_stride]: whole rows, one per sequence */
  int64_t block_table_stride; /* pages that a row has room for */
  const int32_t* page_indptr; /* [batch + 1] */
  const int32_t* page_indices;
} attn_kvcache;

/* attn_fwd over a cache. No dropout and no elementwise bias. In batch mode the problem's seqlen_k
 * is the room of a sequence: in pages block_table_stride * page_size, with page_indptr the greatest
 * length. In group mode queries are packed by cu_seqlens_q; total_k and cu_seqlens_k say lengths
 * only: in pages total_k may be 0, and cu_seqlens_k NULL where seqlens_k is given, and a sequence's
 * keys begin at its first page; in place they are those of packed keys, without seqlens_k and
 * batch_index. */
typedef struct attn_kvcache_fwd_args {
  uint32_t struct_size;
  /* Workgroups that share the keys of a tile of queries, up to 128, and each take a part of them.
   * 1: none share. 0: as many as fill the GPU (docs/kvcache.md has the rule). The CPU ignores it.
   */
  int32_t splits;
  const attn_problem* problem;
  const attn_kvcache* cache;
  attn_tensor q, k, v, o;
  float* lse; /* as in attn_fwd_args */
  const float* alibi_slopes;
  int64_t alibi_stride_batch;
  int32_t min_seqlen_q; /* as in attn_fwd_args; in pages only */
  uint32_t reserved;    /* 0 */
  /* attn_kvcache_fwd_workspace_size bytes on the device, 256-byte aligned; NULL where it is 0. */
  void* workspace;
  uint64_t workspace_size;
  /* Appended first, in the same call: both are checked before anything is written. It has the same
   * problem, k and v, with rotary the same q, and in its cache the lengths before. Its outputs
   * share no byte with anything that attention reads beside these. NULL: nothing is appended. */
  const struct attn_append_kv_args* append;
  /* As in attn_fwd_args. On the GPU it takes more workspace where lse is not wanted. */
  const float* sink;
} attn_kvcache_fwd_args;

/* The pairs of a head's elements in rotary embedding (arXiv:2104.09864). */
typedef enum attn_rotary {
  ATTN_ROTARY_NONE = 0,
  ATTN_ROTARY_HALVES = 1,     /* i and i + rotary_size / 2 (GPT-NeoX) */
  ATTN_ROTARY_INTERLEAVED = 2 /* 2 i and 2 i + 1 (GPT-J) */
} attn_rotary;

/* Appends new keys and values to a cache, behind the seqlens_k keys that each sequence has, and
 * rotates the new keys, and q in place, where rotary says so. Batch mode only; the problem's
 * seqlen_k is the room, and its mask matters in one way: with a mask query i is rotated as the
 * token seqlens_k[b] + i, without one all queries of b are as the token seqlens_k[b]. Attention
 * then takes seqlens_k + seqlen_new as lengths. Each sequence has an entry or pages of its
 * own to be written: no two share one. On the GPU a page has 63 keys or more, or seqlen_new - 1. */
typedef struct attn_append_kv_args {
  uint32_t struct_size;
  int32_t seqlen_new; /* keys that every sequence gets; with seqlens_k, at most the room */
  const attn_problem* problem;
  const attn_kvcache* cache; /* seqlens_k: the lengths before; not with page_indptr */
  attn_tensor q;             /* with rotary, else zero: rotated in place */
  attn_tensor k, v;          /* the cache: written behind the lengths */
  attn_tensor k_new, v_new;  /* [batch, seqlen_new, heads_k, head_size] */
  int32_t rotary;            /* attn_rotary */
  int32_t rotary_size;       /* elements of a head that are rotated, from the first; a multiple of
                              * 16 up to head_size_qk; 0 without rotary */
  /* [rotary_length, rotary_size / 2], contiguous, of the problem's dtype: by token. */
  const void* rotary_cos;
  const void* rotary_sin;
  /* Tokens of the tables: at least seqlen_k, and every token that is rotated. On the GPU, where the
   * library reads no lengths, the caller must see to that: up to seqlens_k[b] +
   * seqlen_q queries with a mask, seqlens_k[b] + 1 without. Tables there begin at multiples of 16
   * bytes. */
  int32_t rotary_length;
  uint32_t reserved; /* 0 */
} attn_append_kv_args;

/* One kernel: an instance on an arch. Strings live as long as the library. */
typedef struct attn_kernel_info_t {
  uint32_t struct_size;
  uint32_t reserved;         /* 0 */
  const char* name;          /* upstream's name of the instance; of asm, AITER's name of the kernel
                              * and, at its end, the arch or the compute units that it is for */
  const char* arch;          /* gfx942 */
  const char* kind;          /* fwd, bwd_dot_do_o, bwd_dq_dk_dv, bwd_convert_dq, sum_heads, ... */
  char key[72];              /* the code object's key: 64 hex digits and a NUL */
  uint64_t code_object_size; /* bytes, unpacked */
  uint64_t embedded_size;    /* bytes in this library, with its share of the pack's dictionary;
                              * 0: its bytes are not in it */
  const char* provider;      /* whose it is: ck (Composable Kernel), asm (AITER), own (this
                              * project) */
} attn_kernel_info_t;

/* ATTN_ABI_VERSION of the library: compare it with the header's before the first call. */
ATTN_API uint32_t attn_abi_version(void);
/* "0.1.0" */
ATTN_API const char* attn_version(void);
/* The reason why this thread's last call failed; "" if it did not. */
ATTN_API const char* attn_last_error(void);
/* The field that it is about, by its name in the struct ("cu_seqlens_q", "k.stride_seq"), with
 * which attn_last_error() begins then; "" where it is about none. It lives as long as the text. */
ATTN_API const char* attn_last_error_field(void);
/* The index of the sequence that it is about; -1 where it is about none, or about all. */
ATTN_API int64_t attn_last_error_index(void);

ATTN_API attn_status attn_fwd(const attn_fwd_args* args);
/* Bytes of workspace with which attn_fwd serves args (whose pointers may be NULL) without an lse on
 * every arch that it can. 0 on the CPU, with an lse, and where no kernel needs any. */
ATTN_API attn_status attn_fwd_workspace_size(const attn_fwd_args* args, uint64_t* bytes);
ATTN_API attn_status attn_bwd(const attn_bwd_args* args);
/* Bytes of workspace that attn_bwd needs for args (whose pointers may be NULL). 0 on the CPU. */
ATTN_API attn_status attn_bwd_workspace_size(const attn_bwd_args* args, uint64_t* bytes);
ATTN_API attn_status attn_dropout_mask(const attn_dropout_mask_args* args);
ATTN_API attn_status attn_kvcache_fwd(const attn_kvcache_fwd_args* args);
/* As attn_bwd_workspace_size. */
ATTN_API attn_status attn_kvcache_fwd_workspace_size(const attn_kvcache_fwd_args* args,
                                                     uint64_t* bytes);
ATTN_API attn_status attn_append_kv(const attn_append_kv_args* args);

/* The kernels that attn_fwd / attn_bwd would launch for args, in this order, as indices of
 * attn_kernel_info; nothing is launched, and the tensors' data may be NULL. arch is that of the
 * device to plan for; NULL: the problem's device's own. *count is the room in kernels on entry, and
 * their number on return; where the room is too small nothing is written to kernels and
 * ATTN_ERROR_INVALID_ARGUMENT is returned. With kernels = NULL only *count is written. On the CPU,
 * and where there is nothing to compute, there are none. */
ATTN_API attn_status attn_plan_fwd(const attn_fwd_args* args, const char* arch, uint32_t* kernels,
                                   uint32_t* count);
ATTN_API attn_status attn_plan_bwd(const attn_bwd_args* args, const char* arch, uint32_t* kernels,
                                   uint32_t* count);
ATTN_API attn_status attn_plan_kvcache_fwd(const attn_kvcache_fwd_args* args, const char* arch,
                                           uint32_t* kernels, uint32_t* count);
ATTN_API attn_status attn_plan_append_kv(const attn_append_kv_args* args, const char* arch,
                                         uint32_t* kernels, uint32_t* count);

/* The same in words, and why the others would not serve. *text lives until this thread's next
 * call. */
ATTN_API attn_status attn_explain_fwd(const attn_fwd_args* args, const char* arch,
                                      const char** text);
ATTN_API attn_status attn_explain_bwd(const attn_bwd_args* args, const char* arch,
                                      const char** text);
ATTN_API attn_status attn_explain_kvcache_fwd(const attn_kvcache_fwd_args* args, const char* arch,
                                              const char** text);
ATTN_API attn_status attn_explain_append_kv(const attn_append_kv_args* args, const char* arch,
                                            const char** text);

/* The number of kernels of this build; 0, and attn_last_error() the reason, where memory is too
 * short to list them. */
ATTN_API uint32_t attn_kernel_count(void);
/* One of them, by its index. */
ATTN_API attn_status attn_kernel_info(uint32_t index, attn_kernel_info_t* info);
/* The code object of a key (an ELF: AMDGPU's or a cubin), unpacked and verified; free it with
 * attn_code_object_free. */
ATTN_API attn_status attn_code_object(const char* key, void** data, uint64_t* size);
ATTN_API void attn_code_object_free(void* data);
/* Where the code object of a key comes from: *provider is the name of the first provider that has
 * it, "" where none has, and *text has a line for each that is asked, in their order, with its
 * answer. Where none has it, both are about the plain compile of the same kernel, which a launch
 * takes then: lines with its key follow. Nothing is unpacked or made for it. Both live until this
 * thread's next call. */
ATTN_API attn_status attn_find_code_object(const char* key, const char** provider,
                                           const char** text);

/* Has the code object of a key fetched into the cache, where a server is to be asked for it.
 * Nothing is compiled for it. *is_there: 1: it is to be had now without a compile; 0: no provider
 * has it, but one may compile it. */
ATTN_API attn_status attn_fetch_code_object(const char* key, uint32_t* is_there);

/* The folder that holds this user's cache, by an absolute path, in the place of the environment
 * variable AITER_ATTN_CACHE_DIR; NULL: as before. It must come before the first call that launches
 * a kernel or asks for a code object, and is refused after it. */
ATTN_API attn_status attn_set_cache_dir(const char* folder);
/* The folder of the cache's files; "" where there is none. *text lives until this thread's next
 * call. */
ATTN_API attn_status attn_cache_dir(const char** text);

/* Has kernels, indices as of attn_plan_*, fetched or compiled into the cache by threads of the
 * library's, several at a time, where a call would have that done first; returns at once. Calls
 * that launch them meanwhile wait for the ones that they need. Give those of forward and backward
 * passes together. A process that ends ends its compiles. */
ATTN_API attn_status attn_warm_up(const uint32_t* kernels, uint32_t count);
/* Waits until no kernel of these is still to be made by attn_warm_up, at most so many milliseconds,
 * without a limit where that is negative, and polls as attn_set_interrupt says. *pending is the
 * number of those that are still to be made. ATTN_OK, or the error of the first that could not be
 * made: a call would get the same. */
ATTN_API attn_status attn_warm_up_wait(const uint32_t* kernels, uint32_t count,
                                       int64_t milliseconds, uint32_t* pending);

/* ATTN_OK and a one-line description where the driver of device_type can be used, else
 * ATTN_ERROR_DRIVER and the reason. *text lives until this thread's next call. */
ATTN_API attn_status attn_driver_info(int32_t device_type, const char** text);

/* For the calling thread's calls from now on: while one of them computes on the CPU, or waits for a
 * kernel that is compiled, this thread calls poll(context) about every 20 ms. Anything but 0 stops
 * the call, which then returns ATTN_ERROR_INTERRUPTED, its outputs undefined. poll must return, and
 * must not call this library. NULL, which is how a thread starts: its calls run to their end. Calls
 * on the GPU queue their work and do not poll. */
ATTN_API void attn_set_interrupt(int (*poll)(void* context), void* context);

/* The process's preference among providers of kernels, for calls with ATTN_KERNELS_DEFAULT:
 * fastest, ck or asm. NULL, which is how a process starts: that of the environment variable
 * AITER_ATTN_KERNELS, or fastest. */
ATTN_API attn_status attn_set_kernels(const char* kernels);

#ifdef __cplusplus
}
#endif
#endif /* AITER_ATTN_H_ */
