// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "kernels/code_object/embedded_pack.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/launch_table/launch_table.h"
#include "zstd.h"

namespace AITER_ATTN_NAMESPACE::kernels {

EmbeddedPack attention_pack();

namespace {

class Pack : public testing::Test {
 protected:
  const EmbeddedPack pack_ = attention_pack();
  EmbeddedPackHeader header_;
  const EmbeddedPackEntry* entries_;

  void SetUp() override {
    ASSERT_GE(pack_.size, sizeof(header_));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(pack_.data) % 16, 0u);
    std::memcpy(&header_, pack_.data, sizeof(header_));
    ASSERT_EQ(std::string_view(header_.magic, 8), "ATTNPCK2");
    ASSERT_LE(header_.count, (pack_.size - sizeof(header_)) / sizeof(EmbeddedPackEntry));
    entries_ = reinterpret_cast<const EmbeddedPackEntry*>(pack_.data + sizeof(header_));
  }

  const EmbeddedPackEntry* find(const uint8_t* key) const {
    const EmbeddedPackEntry* const end = entries_ + header_.count;
    const auto* const found =
        std::lower_bound(entries_, end, key, [](const EmbeddedPackEntry& entry, const uint8_t* k) {
          return std::memcmp(entry.key, k, sizeof(entry.key)) < 0;
        });
    return found != end && std::memcmp(found->key, key, sizeof(found->key)) == 0 ? found : nullptr;
  }
};

TEST_F(Pack, TheFramesFillIt) {
  uint64_t at = sizeof(header_) + header_.count * sizeof(EmbeddedPackEntry);
  EXPECT_EQ(header_.dictionary_offset, at);
  at += header_.dictionary_packed_size;
  for (uint64_t i = 0; i < header_.count; ++i) {
    EXPECT_EQ(entries_[i].offset, at);
    at += entries_[i].packed_size;
  }
  EXPECT_EQ(at, pack_.size);
}

TEST_F(Pack, HasTheCodeObjectOfEveryRow) {
  const LaunchTable& table = launch_table();
  ASSERT_GT(table.row_count(), 2u);
  uint64_t objects = 0;
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     ZSTD_freeDCtx);
  std::vector<char> dictionary(header_.dictionary_size);
  ASSERT_EQ(ZSTD_decompress(dictionary.data(), dictionary.size(),
                            pack_.data + header_.dictionary_offset, header_.dictionary_packed_size),
            dictionary.size());
  for (uint32_t r = 0; r < table.row_count(); ++r) {
    for (uint32_t a = 0; a < table.arch_count(); ++a) {
      const Row& row = table.row(r);
      const CodeObjectRow* const object = table.object(row, static_cast<int>(a));
      if (!object) continue;  // the arch lacks the instance
      const EmbeddedPackEntry* const entry = find(object->key);
      ASSERT_NE(entry, nullptr) << table.name(row);
      EXPECT_EQ(entry->size, object->size);
      EXPECT_EQ(std::memcmp(entry->sha256, object->sha256, sizeof(entry->sha256)), 0);
      std::vector<char> bytes(entry->size);
      ASSERT_EQ(ZSTD_decompress_usingDict(context.get(), bytes.data(), bytes.size(),
                                          pack_.data + entry->offset, entry->packed_size,
                                          dictionary.data(), dictionary.size()),
                entry->size);
      EXPECT_EQ(std::memcmp(bytes.data(), "\177ELF", 4), 0);
      EXPECT_NE(std::string_view(bytes.data(), bytes.size()).find(table.symbol(row)),
                std::string_view::npos);
      ++objects;
    }
  }
  EXPECT_EQ(objects, header_.count);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::kernels
