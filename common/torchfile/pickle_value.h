// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/table/stored_tensor.h"

namespace millrace {

// The kinds of values that a pickle may have here. kHuge is an integer of more
// than 64 bits, and kGlobal a name ("module name").
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
  int64_t integer = 0;  // for kBool and kInteger
  // for kText, kBytes, kHuge and kGlobal; a view into the pickle
  std::string_view bytes = {};
  // The elements of tuples and lists; for dictionaries, keys and values
  // alternate.
  std::vector<const PickleValue*> items = {};
  StoredTensor tensor = {};  // for kTensor and kStorage (one dimension)
};

// Owns all values of a pickle, which may refer to each other. It can be moved
// but not copied, since the values of a copy would point to the original's.
struct PickleDocument {
  PickleDocument() = default;
  PickleDocument(PickleDocument&&) = default;
  PickleDocument& operator=(PickleDocument&&) = default;

  std::deque<PickleValue> values;
  const PickleValue* root = nullptr;
  size_t bytes = 0;  // size of the pickle; others may follow it
};

// The value of a key, which is a string or a tuple of strings. If the key is
// repeated, the last value counts, as in Python. Null if there is no such key,
// or `dict` is not a dictionary.
const PickleValue* FindKey(const PickleValue& dict, std::string_view key);
const PickleValue* FindKey(const PickleValue& dict,
                           std::span<const std::string> key);

}  // namespace millrace
