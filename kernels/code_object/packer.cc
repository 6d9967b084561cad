// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// packer OUT LIST: OUT becomes the pack of the code objects that the file LIST names, a line
// `KEY SHA256 PATH` each; the digests are in hex. packer --frames OUT LIST: their frames alone.
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/code_object/pack_writer.h"

namespace {

using AITER_ATTN_NAMESPACE::kernels::PackedObject;

std::array<uint8_t, 32> from_hex(const std::string& digits) {
  std::array<uint8_t, 32> bytes;
  if (digits.size() != 2 * bytes.size() ||
      digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw std::runtime_error("'" + digits + "' is no sha256: 64 digits 0-9 and a-f");
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
  }
  return bytes;
}

std::ifstream opened(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return in;
}

std::vector<PackedObject> read_objects(const std::string& list) {
  std::vector<PackedObject> objects;
  std::ifstream lines = opened(list);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string key, sha256, path;
    fields >> key >> sha256 >> std::ws;
    std::getline(fields, path);
    std::ifstream in = opened(path);
    objects.push_back({from_hex(key), from_hex(sha256), {std::istreambuf_iterator<char>(in), {}}});
  }
  return objects;
}

}  // namespace

int main(int argc, char** argv) try {
  using namespace AITER_ATTN_NAMESPACE;
  const bool frames = argc > 1 && std::string(argv[1]) == "--frames";
  if (argc != (frames ? 4 : 3)) throw std::runtime_error("usage: packer [--frames] OUT LIST");
  const std::string path = argv[argc - 2];
  std::vector<PackedObject> objects = read_objects(argv[argc - 1]);
  const auto made =
      frames ? kernels::write_frames(objects) : kernels::write_pack(std::move(objects));
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(made.data()), static_cast<std::streamsize>(made.size()));
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "packer: %s\n", error.what());
  return 1;
}
