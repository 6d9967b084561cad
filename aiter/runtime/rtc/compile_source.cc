// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The compile of the library, as a program for actions:
//
//   compile_source recipe OUT ARCH [--header NAME=PATH]... [-- FLAG...]
//   compile_source object STEM ARCH INSTANCE SOURCE_NAME=PATH [--header NAME=PATH]... [-- FLAG...]
//
// recipe writes the part that the specs of all kernels share. object writes STEM.cubin (STEM.hsaco
// for gfx*), its spec (STEM.spec), and its description (STEM.json); FLAGs are the
// recipe's and the kernel's. A FLAG @PATH stands for the lines of a file.
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "aiter/runtime/rtc/compiler.h"

namespace {

using namespace AITER_ATTN_NAMESPACE::runtime;

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <typename Data>
void write(const std::string& path, const Data& data) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path);
}

SourceFile named(const std::string& argument) {
  const size_t at = argument.find('=');
  if (at == argument.npos) throw std::runtime_error("'" + argument + "' is not NAME=PATH");
  return {argument.substr(0, at), read(argument.substr(at + 1))};
}

struct Arguments {
  std::vector<std::string> words;
  std::vector<SourceFile> headers;
  std::vector<std::string> flags;
};

Arguments parse(int argc, char** argv) {
  Arguments parsed;
  int i = 1;
  for (; i < argc && std::string(argv[i]) != "--"; ++i) {
    if (std::string(argv[i]) != "--header") {
      parsed.words.push_back(argv[i]);
    } else {
      if (++i == argc) throw std::runtime_error("--header at the end: NAME=PATH is missing");
      parsed.headers.push_back(named(argv[i]));
    }
  }
  for (++i; i < argc; ++i) {
    if (argv[i][0] != '@') {
      parsed.flags.push_back(argv[i]);
      continue;
    }
    std::ifstream lines(argv[i] + 1);
    if (!lines) throw std::runtime_error(std::string("cannot read ") + (argv[i] + 1));
    for (std::string line; std::getline(lines, line);) parsed.flags.push_back(line);
  }
  return parsed;
}

Recipe recipe_of(const Arguments& arguments, const Compiler& compiler) {
  return {arguments.flags, header_tree_digest(arguments.headers), compiler.identity()};
}

void write_object(const Arguments& arguments, const Compiler& compiler) {
  const std::string& stem = arguments.words[1];
  const std::string& arch = arguments.words[2];
  if (compiler.target(arch) != arch) {
    throw std::runtime_error(compiler.describe() + " makes no machine code for " + arch);
  }
  const SourceFile source = named(arguments.words[4]);
  const Bytes object = compiler.compile(source, arguments.headers, arguments.flags, arch);
  const CodeObjectSpec spec =
      recipe_of(arguments, compiler)
          .spec(hex(sha256(source.text.data(), source.text.size())), arch, {});
  write(stem + (arch.compare(0, 3, "gfx") == 0 ? ".hsaco" : ".cubin"), object);
  write(stem + ".spec", spec.canonical());
  write(stem + ".json", concat("{\n \"arch\": \"", arch, "\",\n \"instance\": \"",
                               arguments.words[3], "\",\n \"key\": \"", hex(spec.key()),
                               "\",\n \"sha256\": \"", hex(sha256(object.data(), object.size())),
                               "\",\n \"size\": ", object.size(), "\n}\n"));
}

}  // namespace

int main(int argc, char** argv) try {
  const Arguments arguments = parse(argc, argv);
  const std::string what = arguments.words.empty() ? "" : arguments.words[0];
  if (what == "recipe" && arguments.words.size() == 3) {
    write(arguments.words[1],
          recipe_of(arguments, *open_compiler(arguments.words[2], {})).serialised());
  } else if (what == "object" && arguments.words.size() == 5) {
    write_object(arguments, *open_compiler(arguments.words[2], {}));
  } else {
    throw std::runtime_error("usage: recipe OUT ARCH ... or object STEM ARCH INSTANCE SOURCE ...");
  }
  return 0;
} catch (const CompileError& error) {
  // The message has the log's beginning alone.
  std::fprintf(stderr, "compile_source: %s\n\n%s\n", error.what(), error.log().c_str());
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "compile_source: %s\n", error.what());
  return 1;
}
