// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Signatures that minisign 0.11 made.
#include "aiter/runtime/store/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "aiter/runtime/error.h"
#include "aiter/runtime/store/sha512.h"
#include "tests/support/runtime/error_of.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr char kContent[] = "a pack of others";
constexpr char kKey[] =
    "untrusted comment: minisign public key 662357FDC3E99697\n"
    "RWSXlunD/VcjZg0PxV2bp4BRGsdtqcm3Cqnqy5wUen5LWnAUcZNBp+hy\n";
const std::string kSignature =
    "untrusted comment: signature from minisign secret key\n"
    "RUSXlunD/VcjZtS8tafKEn9FabnqvwIo8WXzKZcu0bcxmNgDncvtvCtEz+7g4/"
    "wzse8ayGtaTf0JnppJAgKE6CKjhhmXj2iieg"
    "U=\n"
    "trusted comment: aiter-attn test\n"
    "swcs6WYwOdBbT3/kaN6lJThBeEQqcVlDK9/N4MnrY1Ab3zD4TZjUfC4sVaKPMfNZMaqmF876imh/hQn33XtfBA==\n";
// Of the same content by minisign -l, and by another key.
constexpr char kOldSignature[] =
    "untrusted comment: signature from minisign secret key\n"
    "RWSXlunD/VcjZpMJw+8fZROICfSXlxCzrGlMPabI7bzkMUhmFzUR88ANQsxIFoaUnPdSQ4LN6lK6q5tbcaG5036/"
    "KQdiW8e0dA"
    "A=\n"
    "trusted comment: old format\n"
    "kcSAaTzIJbLG94uoSAgiN4GlY/TYO2e9RDqtTOxaHB/EDZK/n5P/2hT55gR0XelRF0q4Dimwb7aAjLgftUEXAA==\n";
constexpr char kOthersSignature[] =
    "untrusted comment: signature from minisign secret key\n"
    "RUQgh8PPowwLt0RpU/zFbbnQUZsxsNm5hjgRkND5UgW+PVbCkirAiZa9vrQvvBbAgGzBHq4XHBdB+H62eD/hfTv/"
    "gcKQCzOpAA"
    "s=\n"
    "trusted comment: of another\n"
    "4RLYdag96HFAZM7EA2hTch9kON6Q2hBLYEP9C+z/HJt7deonSbfI2/ZHem6ccnOi9SN2KgIt2KOupJsfubALCg==\n";

class Signatures : public ::testing::Test {
 protected:
  Signatures() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  void trust(const std::string& paths) const { setenv(kTrustVariable, paths.c_str(), 1); }
  // The key by which a signature signs content; or throws.
  std::string verify(const std::string& signature, const std::string& content = kContent) const {
    SignedContent signed_content;
    for (const char& c : content) signed_content.add(&c, 1);
    trust(write("minisign.pub", kKey));
    return verify_signature(write("pack.minisig", signature), signed_content.hash(),
                            trusted_keys());
  }
  void refuses(const std::string& signature, Status status, const std::string& why,
               const std::string& content = kContent) const {
    const Error error = error_of([&] { verify(signature, content); });
    EXPECT_EQ(error.status(), status) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(why));
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "signature_test";
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST_F(Signatures, OfATrustedKeyAreBelieved) {
  EXPECT_EQ(verify(kSignature), "662357FDC3E99697");
  EXPECT_EQ(verify(replaced(kSignature, "secret key\n", "secret key\r\n")), "662357FDC3E99697");
}

TEST_F(Signatures, OfOtherContentAreRefused) {
  refuses(kSignature, Status::kCorrupt, "/pack.minisig', which is not of this file's bytes", "");
  refuses(kSignature, Status::kCorrupt, "is not of this file's bytes", "a pack of other");
  refuses(kSignature, Status::kCorrupt, "is not of this file's bytes", "a pack of othert");
}

TEST_F(Signatures, ThatWereChangedAreRefused) {
  for (const char* from : {"fKEn9", "iiegU="}) {
    refuses(replaced(kSignature, from, std::string("A") + (from + 1)), Status::kCorrupt,
            "is not of this file's bytes");
  }
  refuses(replaced(kSignature, "aiter-attn test", "aiter-attn best"), Status::kCorrupt,
          "has a comment that is not signed");
  refuses(replaced(kSignature, "swcs", "Swcs"), Status::kCorrupt, "has a comment that is not");
}

TEST_F(Signatures, OfOthersAndOfTheOldKindAreRefused) {
  refuses(kOthersSignature, Status::kUnsupported,
          "is signed by the key B70B0CA3CFC38720, which is not trusted: name its file in "
          "AITER_ATTN_TRUST");
  refuses(kOldSignature, Status::kCorrupt, "is of minisign's old kind; sign it again, without -l");
}

TEST_F(Signatures, ThatAreNoneAreRefused) {
  for (const std::string& text :
       {std::string("nothing"), kSignature.substr(0, 100), replaced(kSignature, "RUSX", "RU*X"),
        replaced(kSignature, "RUSX", "QUSX"), replaced(kSignature, "untrusted", "trusted"),
        replaced(kSignature, "iiegU=", "iiegUA"), std::string(4096, '\n')}) {
    refuses(text, Status::kCorrupt, "is none of minisign's");
  }
  refuses(std::string(5000, 'x'), Status::kUnsupported, "has no signature '");
  const Error error = error_of([&] { verify_signature(folder_ / "none", {}, {}); });
  EXPECT_EQ(error.status(), Status::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("/none': No such file or directory"));
}

TEST_F(Signatures, TrustNamesPublicKeysOfThisUsers) {
  trust("");
  EXPECT_TRUE(trusted_keys().empty());
  const std::string key = write("key.pub", kKey);
  trust(key + "::" + key);
  EXPECT_EQ(trusted_keys().size(), 2);
  const auto refuses = [](const std::string& why) {
    const Error error = error_of([] { trusted_keys(); });
    EXPECT_EQ(error.status(), Status::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr(why));
  };
  trust("key.pub");
  refuses("AITER_ATTN_TRUST has 'key.pub', but must have absolute paths");
  trust(folder_ / "none");
  refuses("/none', which cannot be read: No such file or directory");
  trust(folder_);
  refuses("signature_test', which cannot be read: ");
  trust(write("other.pub", kSignature));
  refuses("is no public key of minisign's; name the file that minisign -G writes");
  fs::permissions(key, fs::perms::all);
  trust(key);
  refuses("/key.pub', which belongs to another user, or others may write to it");
  trust("");
}

// FIPS 180-4's examples.
TEST(Sha512, HasTheStandardsDigests) {
  const auto hex = [](const std::string& first, const std::string& second) {
    std::string text;
    for (const unsigned char byte :
         sha512({{first.data(), first.size()}, {second.data(), second.size()}})) {
      char digits[3];
      std::snprintf(digits, sizeof(digits), "%02x", byte);
      text += digits;
    }
    return text;
  };
  EXPECT_EQ(hex("", ""),
            "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce"
            "47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e");
  EXPECT_EQ(hex("a", "bc"),
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
            "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
  EXPECT_EQ(hex(std::string(500'000, 'a'), std::string(500'000, 'a')),
            "e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973eb"
            "de0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b");
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
