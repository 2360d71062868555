// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/array.h"
#include "common/base/dtype.h"

namespace millrace {

// Calls `use` with the elements of an array of ids as a span of uint32, or of
// uint64 for types of 2^32 nodes and more. An absent array gives an empty span.
template <typename Use>
auto WithIds(const Array& ids, Use use) {
  return ids.dtype() == DType::kUint64 ? use(ids.As<uint64_t>())
                                       : use(ids.As<uint32_t>());
}

}  // namespace millrace
