// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The code-object store: an ordered list of providers, asked one after the other for the bytes of a
// key. Every provider has the same bytes for a key.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aiter/runtime/store/digest.h"
#include "aiter/runtime/store/spec.h"

namespace AITER_ATTN_NAMESPACE::runtime {

using Bytes = std::vector<unsigned char>;

// No code object is larger: one that claims to be is damaged, and is given no memory.
inline constexpr uint64_t kMostObjectBytes = uint64_t{256} << 20;

// A kernel, as it is launched.
struct KernelFacts {
  const char* symbol;
  uint32_t kernarg_size;    // bytes that the host code makes
  uint32_t workgroup_size;  // work-items
};

// A code object, as its user knows it.
struct CodeObjectRef {
  Digest key;
  // Of the bytes: their proof, wherever they come from. Nothing: no bytes were built yet, and
  // a provider needs another proof of its own.
  std::optional<Digest> sha256;
  // The spec, for a provider that makes the object; empty: not known. Only a provider that needs it
  // asks: to put a spec together costs more than to find a module that is loaded.
  std::function<CodeObjectSpec()> spec = {};
  // The source that it is made of, where this process has that.
  const SourceFile* source = nullptr;
  const std::vector<SourceFile>* headers = nullptr;
  // The next step where no provider has it, for a message; empty: none is known.
  std::function<std::string()> remedy = {};
  // The kernel, for people; empty: it has no name.
  std::function<std::string()> name = {};
  // The object of the same kernel's plain compile, which serves a launch as well; empty: it is this
  // one, or there is none.
  std::function<CodeObjectRef()> plain = {};
  // Its kernel, where it is about to be launched: bytes that no digest proves are held against it.
  std::optional<KernelFacts> kernel = {};
};

// A provider's answer to the question whether it has a key's bytes. They are not unpacked for it.
struct Answer {
  bool has = false;
  std::string text = "does not have it";
  bool is_made = false;     // it has it, but not before get() has made it, which takes seconds
  bool is_fetched = false;  // get() asks a server for it, which may lack it

  bool is_there() const { return has && !is_made && !is_fetched; }
};

// One source of code objects. Safe to call from several threads; one key must not wait for another.
class Provider {
 public:
  virtual ~Provider() = default;
  virtual std::string name() const = 0;
  // false: get() has nothing, for any content of this provider. Takes no time and no lock.
  virtual bool may_have(const CodeObjectRef&) const { return true; }
  // Bytes that are proven to be the key's, or nothing. Throws Status::kCorrupt, naming the key,
  // where this provider has bytes but not the right ones.
  virtual std::optional<Bytes> get(const CodeObjectRef& ref) = 0;
  // The object of the same kernel that this provider makes under a key of its own, which serves a
  // launch as well; nothing: it makes none. Throws as get() does.
  virtual std::optional<CodeObjectRef> own(const CodeObjectRef&) const { return std::nullopt; }
  // All that may change what is made: a failure of one identity says nothing about another's. "":
  // not known.
  virtual std::string identity() const { return ""; }
  // Whether get() would give bytes, for people: nothing is made for it. Throws as get() does.
  virtual Answer look(const CodeObjectRef& ref) {
    return may_have(ref) ? Answer{true, "makes it at its first use", true} : Answer{};
  }
};

class Store {
 public:
  explicit Store(std::vector<std::unique_ptr<Provider>> providers);
  // The bytes from the first provider that has them. Where none has, throws what the first provider
  // that failed threw, or else Status::kUnsupported; the message names the key, and each provider's
  // reason.
  Bytes get(const CodeObjectRef& ref) const;
  // The same of the providers that have it, or may have it, and need not make it; nothing: they do
  // not have it.
  std::optional<Bytes> fetch(const CodeObjectRef& ref) const;
  // The bytes that a launch takes: the key's; where no provider has these, those of the kernel's
  // plain compile; and where none has these, those that a provider makes under a key of its own.
  // Throws as get() does.
  Bytes serve(const CodeObjectRef& ref) const;

  // The objects of the same kernel that providers make under keys of their own.
  std::vector<CodeObjectRef> own(const CodeObjectRef& ref) const;

  struct Told {
    std::string provider;
    Answer answer;
    bool is_of_other = false;  // it is about an object of another key, as its text says
  };
  // The answers of all providers in their order; a failure of one is its answer. Where none has it,
  // the answers about the other objects that serve() takes follow, up to the first provider that
  // has one.
  std::vector<Told> look(const CodeObjectRef& ref) const;

 private:
  struct Failure;
  struct Other;
  static std::optional<Bytes> ask(Provider& provider, const CodeObjectRef& ref, Failure& failure);
  std::optional<Bytes> ask(const CodeObjectRef& ref, Failure& failure) const;
  [[noreturn]] static void refuse(const CodeObjectRef& ref, const Failure& failure);
  Told ask_where(Provider& provider, const CodeObjectRef& ref) const;
  // The other objects that may serve, the first one first.
  std::vector<Other> others(const CodeObjectRef& ref, Failure& failure) const;

  std::vector<std::unique_ptr<Provider>> providers_;
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
