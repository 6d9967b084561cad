// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>

#include "aiter/attention/problem/checks.h"
#include "aiter/attention/problem/validate.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

void require_array(const char* field, const int32_t* array, int64_t entries) {
  if (entries == 0) return;
  if (!array) {
    refuse(field, "NULL", "this cache needs ", entries, " numbers in the memory of the device");
  }
  require_aligned(field, array, alignof(int32_t));
}

void validate_in_place(const Problem& p) {
  const attn_kvcache& c = p.cache;
  const char* const pages =
      "keys are in place, as page_size is 0, and it belongs to pages: leave it zero";
  require_unset("block_table", c.block_table, pages);
  require_unset("block_table_stride", c.block_table_stride, pages);
  require_unset("page_indptr", c.page_indptr, pages);
  require_unset("page_indices", c.page_indices, pages);
  require_unset("min_seqlen_q", p.min_seqlen_q, pages);
  if (is_group(p)) {
    const char* const packed =
        "in group mode keys in place are packed by cu_seqlens_k: leave it zero";
    require_unset("seqlens_k", c.seqlens_k, packed);
    require_unset("batch_index", c.batch_index, packed);
    if (c.entries != p.batch) {
      refuse("entries", c.entries, "packed keys are those of batch, ", p.batch, ", sequences");
    }
  } else if (!c.batch_index && c.entries < p.batch) {
    refuse("entries", c.entries, "must be at least batch, ", p.batch,
           ", without batch_index: sequence b has entry b");
  }
}

void validate_block_table(const Problem& p) {
  const attn_kvcache& c = p.cache;
  if (c.block_table_stride < 0 || c.block_table_stride > kMaxInt32) {
    refuse("block_table_stride", c.block_table_stride, "must be from 0 to ", kMaxInt32, " pages");
  }
  const int64_t room = c.block_table_stride * c.page_size;
  if (is_group(p) ? p.seqlen_k > room : p.seqlen_k != room) {
    refuse("seqlen_k", p.seqlen_k, "must ", is_group(p) ? "not exceed" : "be",
           " the room of a row of block_table: block_table_stride (", c.block_table_stride,
           ") times page_size (", c.page_size, ")");
  }
}

void validate_page_list(const Problem& p) {
  const attn_kvcache& c = p.cache;
  const char* const list = "page_indptr says where keys are: leave it zero";
  require_unset("block_table", c.block_table, list);
  require_unset("block_table_stride", c.block_table_stride, list);
  if (c.page_size != 1) {
    refuse("page_size", c.page_size, "must be 1 with page_indptr: it lists keys one by one");
  }
}

void validate_in_pages(const Problem& p) {
  require_unset("batch_index", p.cache.batch_index,
                "pages are found by block_table or page_indices: leave it zero");
  in_page_list(p) ? validate_page_list(p) : validate_block_table(p);
}

void require_arrays(const Problem& p) {
  const attn_kvcache& c = p.cache;
  const int64_t batch = p.batch;
  if (c.seqlens_k) require_array("seqlens_k", c.seqlens_k, batch);
  if (c.batch_index) require_array("batch_index", c.batch_index, batch);
  if (!in_pages(p)) return;
  if (in_page_list(p)) {
    if (!c.page_indptr) {
      refuse("block_table", "NULL", "keys in pages need it, and block_table_stride; or page_indptr",
             " and page_indices, with page_size 1");
    }
    require_array("page_indptr", c.page_indptr, batch + 1);
    const bool on_cpu = p.device_type == ATTN_DEVICE_CPU;
    // On the GPU the caller alone knows their number.
    require_array("page_indices", c.page_indices,
                  on_cpu ? c.page_indptr[batch] : int64_t{p.seqlen_k});
    return;
  }
  require_unset("page_indices", c.page_indices,
                "belongs to page_indptr, which is NULL: leave it zero");
  require_array("block_table", c.block_table, batch * c.block_table_stride);
}

void validate_page_indptr(const Problem& p) {
  const int32_t* const indptr = p.cache.page_indptr;
  if (indptr[0] != 0) refuse({"page_indptr[0]", 0}, indptr[0], "must be 0");
  for (int64_t b = 0; b < p.batch; ++b) {
    const int64_t length = int64_t{indptr[b + 1]} - indptr[b];
    if (length < 0) {
      refuse({concat("page_indptr[", b + 1, "]"), b}, indptr[b + 1],
             "must not be less than the one before, ", indptr[b]);
    }
    if (length > p.seqlen_k) {
      refuse({concat("page_indptr[", b + 1, "] - page_indptr[", b, "]"), b}, length,
             "must not exceed the room of a sequence, ", p.seqlen_k);
    }
  }
}

void validate_length(const Problem& p, int64_t b) {
  const attn_kvcache& c = p.cache;
  if (!c.seqlens_k) return;
  const auto require_room = [&](int64_t room, const char* what) {
    if (c.seqlens_k[b] >= 0 && c.seqlens_k[b] <= room) return;
    refuse({concat("seqlens_k[", b, "]"), b}, c.seqlens_k[b], "must be from 0 to ", room, ", ",
           what);
  };
  require_room(p.seqlen_k - p.seqlen_new, p.seqlen_new == 0
                                              ? "the room of a sequence"
                                              : "the room of a sequence less the new keys");
  if (c.page_indptr) {
    require_room(int64_t{c.page_indptr[b + 1]} - c.page_indptr[b],
                 "the keys that page_indptr lists for the sequence");
  }
  if (p.cu_seqlens_k) {
    require_room(int64_t{p.cu_seqlens_k[b + 1]} - p.cu_seqlens_k[b],
                 "the length of the sequence by cu_seqlens_k");
  }
}

// index: in the array; b: the sequence whose it is.
void validate_entry(const Problem& p, const char* array, int64_t index, int64_t b, int32_t entry) {
  if (entry >= 0 && entry < p.cache.entries) return;
  refuse({concat(array, "[", index, "]"), b}, entry, "the cache has ", p.cache.entries,
         in_pages(p) ? " pages" : " entries", ", numbered from 0");
}

// Numbers in host memory are in range, and read once: of the pages those that are in use.
void validate_contents(Problem* problem) {
  const Problem& p = *problem;
  attn_kvcache& c = problem->cache;
  if (c.page_indptr) validate_page_indptr(p);
  if (!c.seqlens_k && !c.batch_index && !in_pages(p)) return;
  const bool list = in_page_list(p);
  const char* const field = list ? "page_indices" : "block_table";
  const int32_t* const given = list ? c.page_indices : c.block_table;
  std::shared_ptr<int32_t[]> pages;
  if (given)
    pages.reset(new int32_t[list ? c.page_indptr[p.batch] : p.batch * c.block_table_stride]);
  for (int64_t b = 0; b < p.batch; ++b) {
    validate_length(p, b);
    if (c.batch_index) validate_entry(p, "batch_index", b, b, c.batch_index[b]);
    if (!in_pages(p)) continue;
    const int64_t first = list ? c.page_indptr[b] : b * c.block_table_stride;
    const int64_t used = (keys_of(p, b) + p.seqlen_new + c.page_size - 1) / c.page_size;
    for (int64_t j = first; j < first + used; ++j) {
      pages[j] = given[j];
      validate_entry(p, field, j, b, pages[j]);
    }
  }
  if (!pages) return;
  (list ? c.page_indices : c.block_table) = pages.get();
  problem->copies.push_back(pages);
}

}  // namespace

void validate_places(const Problem& p) {
  const attn_kvcache& c = p.cache;
  if (c.entries < 0) refuse("entries", c.entries, "must be at least 0");
  if (c.page_size < 0) refuse("page_size", c.page_size, "must be at least 1, or 0: in place");
  in_pages(p) ? validate_in_pages(p) : validate_in_place(p);
  if (p.device_type == ATTN_DEVICE_CPU) return;
  const int64_t entries = p.batch * p.cache.block_table_stride;
  if (entries > kMaxInt32) {
    refuse("block_table_stride", p.cache.block_table_stride, "over ", p.batch,
           " rows it exceeds the ", kMaxInt32,
           " entries that a GPU kernel can address: pass the batch entries in parts");
  }
}

void validate_arrays(Problem* problem, Pointers pointers) {
  const Problem& p = *problem;
  if (pointers == Pointers::kIgnored) return;
  copy_array(problem, &problem->cache.seqlens_k, p.batch);
  copy_array(problem, &problem->cache.batch_index, p.batch);
  if (in_pages(p)) copy_array(problem, &problem->cache.page_indptr, int64_t{p.batch} + 1);
  require_arrays(p);
  if (p.device_type == ATTN_DEVICE_CPU) validate_contents(problem);
}

}  // namespace AITER_ATTN_NAMESPACE::attention
