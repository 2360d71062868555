// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/ingest/stored_tensor.h"

namespace millrace {

// What a pickle can hold here. kHuge: an integer beyond 64 bits. kGlobal: a
// name, "module name".
enum class PickleKind {
  kNone,
  kBool,
  kInteger,
  kHuge,
  kFloat,
  kText,
  kBytes,
  kTuple,
  kList,
  kDict,
  kGlobal,
  kStorage,
  kTensor
};

// "a dictionary", ...
std::string_view PickleKindName(PickleKind kind);

struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  int64_t integer = 0;          // kBool, kInteger
  std::string_view bytes = {};  // kText, kBytes, kHuge, kGlobal; in the pickle
  // The elements of tuples and lists; of dictionaries keys and values in
  // turn.
  std::vector<const PickleValue*> items = {};
  StoredTensor tensor = {};  // kTensor, kStorage (one dimension)
};

// All values of a pickle, whatever refers to what. Moving keeps pointers to
// values, copying would not.
struct PickleDocument {
  PickleDocument() = default;
  PickleDocument(PickleDocument&&) = default;
  PickleDocument& operator=(PickleDocument&&) = default;

  std::deque<PickleValue> values;
  const PickleValue* root = nullptr;
  size_t bytes = 0;  // of the pickle, which may be followed by others
};

// What a dictionary holds for a text, or a tuple of texts; the last one, as
// in Python. Null when there is none, or `dict` is no dictionary.
const PickleValue* FindKey(const PickleValue& dict, std::string_view key);
const PickleValue* FindKey(const PickleValue& dict,
                           std::span<const std::string> key);

}  // namespace millrace
