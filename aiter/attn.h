/* Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
 *
 * The C ABI of aiter-attn: fused attention, forward and backward, in batch and group (varlen) mode.
 *
 * Rules that hold for every function here
 *  - It returns an attn_status; on anything but ATTN_OK attn_last_error() has the reason, for the
 * calling thread, until that thread's next call.
 *  - Every args struct starts with struct_size = sizeof(the struct as the caller was compiled).
 * Fields are only ever appended, and zero means "as before the field existed"; so an older caller
 * is served, and a newer caller is served as long as the fields this library does not know are
 * zero, else refused with ATTN_ERROR_ABI_MISMATCH.
 *  - No pointer is kept after the call. GPU work is queued on `stream` and not waited for.
 *  - Names are written attn_*; the linker sees NAMESPACE_attn_* (build setting //aiter:namespace),
 * so that two copies of the library can live in one process.
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
#define attn_fwd ATTN_SYMBOL(fwd)
#define attn_varlen_fwd ATTN_SYMBOL(varlen_fwd)
#define attn_bwd ATTN_SYMBOL(bwd)
#define attn_varlen_bwd ATTN_SYMBOL(varlen_bwd)
#define attn_bwd_workspace_size ATTN_SYMBOL(bwd_workspace_size)
#define attn_explain_fwd ATTN_SYMBOL(explain_fwd)
#define attn_explain_bwd ATTN_SYMBOL(explain_bwd)
#define attn_kernel_count ATTN_SYMBOL(kernel_count)
#define attn_kernel_info ATTN_SYMBOL(kernel_info)
#define attn_code_object ATTN_SYMBOL(code_object)
#define attn_code_object_free ATTN_SYMBOL(code_object_free)
#define attn_driver_info ATTN_SYMBOL(driver_info)

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
  ATTN_ERROR_INVALID_ARGUMENT = 1, /* a value no build of this library would accept */
  ATTN_ERROR_UNSUPPORTED =
      2, /* valid, but no kernel instance (or no arch) in this build serves it */
  ATTN_ERROR_ABI_MISMATCH = 3, /* struct_size is short, or unknown fields are set */
  ATTN_ERROR_DRIVER = 4,       /* the GPU runtime is absent or failed */
  ATTN_ERROR_OUT_OF_MEMORY = 5,
  ATTN_ERROR_CORRUPT = 6, /* a code object does not have its digest */
  ATTN_ERROR_INTERNAL = 7
} attn_status;

typedef enum attn_device_type {
  ATTN_DEVICE_CPU =
      1, /* host memory: the CPU reference; numbers equal DLPack's kDLCPU and kDLROCM */
  ATTN_DEVICE_ROCM = 10 /* memory of an AMD GPU: HIP */
} attn_device_type;

typedef enum attn_dtype {
  ATTN_DTYPE_FP16 = 1,
  ATTN_DTYPE_BF16 = 2,
  ATTN_DTYPE_FP32 = 3 /* CPU reference only */
} attn_dtype;

/* Which diagonal windows are counted from; with window_left = -1 and window_right = 0 this is the
 * causal mask. */
typedef enum attn_mask {
  ATTN_MASK_NONE = 0,     /* windows are ignored and must be -1 */
  ATTN_MASK_TOP_LEFT = 1, /* query i sits at key i */
  ATTN_MASK_BOTTOM_RIGHT =
      2, /* query i sits at key i + seqlen_k - seqlen_q (flash-attn's convention) */
} attn_mask;

/* A tensor [batch, seqlen, heads, head_size] (batch mode) or [total, heads, head_size] (group mode:
 * stride_batch is ignored). Strides are in elements; the head_size dimension is contiguous; the
 * stride of a dimension with one entry is ignored. Outputs must not alias anything, nor themselves.
 * On the GPU strides are from 0 to 2^31 - 1, data is a multiple of 16 bytes and strides are
 * multiples of 8, unless the chosen instance takes less. data may be NULL where the tensor has no
 * entry. */
typedef struct attn_tensor {
  void* data;
  int64_t stride_batch;
  int64_t stride_seq;
  int64_t stride_head;
} attn_tensor;

/* What forward and backward have in common. */
typedef struct attn_problem {
  int32_t device_type; /* attn_device_type */
  int32_t device_id;   /* HIP device ordinal; 0 for the CPU */
  void* stream;        /* hipStream_t; NULL is the default stream; ignored on the CPU */
  int32_t dtype;       /* attn_dtype of q, k, v, o and their gradients */
  int32_t batch;
  int32_t heads_q;
  int32_t heads_k; /* divides heads_q */
  int32_t head_size_qk;
  int32_t head_size_v;
  int32_t seqlen_q; /* batch mode: the length; group mode: the greatest length */
  int32_t seqlen_k;
  int32_t total_q; /* group mode: sum of lengths; batch mode: 0 */
  int32_t total_k; /* likewise */
  const int32_t*
      cu_seqlens_q; /* group mode: [batch + 1], in the memory of device_type; batch mode: NULL */
  const int32_t* cu_seqlens_k;
  float softmax_scale;  /* positive and finite */
  int32_t mask;         /* attn_mask */
  int32_t window_left;  /* keys to the left of the diagonal that are seen; -1: all */
  int32_t window_right; /* likewise to the right */
} attn_problem;

/* o = softmax(softmax_scale * q k^T + mask) v; lse = log sum exp of the masked, scaled scores
 * (natural log). A row with no key gives o = 0 and lse = -inf. */
typedef struct attn_fwd_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  attn_problem problem;
  attn_tensor q, k, v, o;
  float* lse; /* fp32, contiguous, [batch, heads_q, seqlen_q] or [heads_q, total_q]; NULL: not
                 wanted */
} attn_fwd_args;

/* Gradients of attn_fwd. dk and dv have heads_k heads: the sum over their group of query heads. */
typedef struct attn_bwd_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  attn_problem problem;
  attn_tensor q, k, v, o, dout;
  const float* lse; /* as attn_fwd wrote it */
  attn_tensor dq, dk, dv;
  void* workspace; /* attn_bwd_workspace_size bytes on the device, 256-byte aligned; NULL where the
                      size is 0 */
  uint64_t workspace_size;
} attn_bwd_args;

/* One kernel instance on one arch. Strings live as long as the library. */
typedef struct attn_kernel_info_t {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name; /* CK's instance name */
  const char* arch; /* gfx942 */
  const char* key;  /* 64 hex digits: the code object's content key */
  const char* symbol;
  const char* kind;          /* fwd, bwd_dot_do_o, bwd_dq_dk_dv, bwd_convert_dq, sum_heads */
  uint64_t code_object_size; /* bytes, unpacked */
  uint64_t embedded_size;    /* bytes in this library */
} attn_kernel_info_t;

/* ATTN_ABI_VERSION of the library: compare it with the header's before the first call. */
ATTN_API uint32_t attn_abi_version(void);
/* "0.1.0" */
ATTN_API const char* attn_version(void);
/* Why this thread's last call failed; "" if it did not. */
ATTN_API const char* attn_last_error(void);

ATTN_API attn_status attn_fwd(const attn_fwd_args* args);
ATTN_API attn_status attn_varlen_fwd(const attn_fwd_args* args);
ATTN_API attn_status attn_bwd(const attn_bwd_args* args);
ATTN_API attn_status attn_varlen_bwd(const attn_bwd_args* args);
/* Bytes of workspace that attn_bwd / attn_varlen_bwd need for args (whose pointers may be NULL). 0
 * on the CPU. */
ATTN_API attn_status attn_bwd_workspace_size(const attn_bwd_args* args, uint64_t* bytes);

/* Which instances would serve args on arch (NULL: the device's own), and why the others would not;
 * nothing is launched and no data pointer is read. *text lives until this thread's next call. */
ATTN_API attn_status attn_explain_fwd(const attn_fwd_args* args, const char* arch,
                                      const char** text);
ATTN_API attn_status attn_explain_bwd(const attn_bwd_args* args, const char* arch,
                                      const char** text);

/* The launch table, row by row: rows are instance x arch. */
ATTN_API uint32_t attn_kernel_count(void);
ATTN_API attn_status attn_kernel_info(uint32_t index, attn_kernel_info_t* info);
/* The code object (an AMDGPU ELF) of a key, unpacked and verified; free it with
 * attn_code_object_free. */
ATTN_API attn_status attn_code_object(const char* key, void** data, uint64_t* size);
ATTN_API void attn_code_object_free(void* data);

/* ATTN_OK and a one-line description where the driver of device_type can be used, else
 * ATTN_ERROR_DRIVER and the reason. *text lives until this thread's next call. */
ATTN_API attn_status attn_driver_info(int32_t device_type, const char** text);

#ifdef __cplusplus
}
#endif
#endif /* AITER_ATTN_H_ */
