// SPDX-License-Identifier: Apache-2.0
#include "common/table/stored_tensor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr size_t kMaxDimensions = 8;

// Computes the number of elements, and the position of the last one given that
// the first is at `offset`. Returns false if that position or the product of
// the non-zero sizes does not fit in 63 bits, or if a number is negative.
bool Measure(int64_t offset, const std::vector<int64_t>& sizes,
             const std::vector<int64_t>& strides, int64_t& elements,
             int64_t& last) {
  int64_t product = 1;
  bool empty = false;
  last = offset;
  if (offset < 0) return false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t step = 0;
    if (sizes[i] < 0 || strides[i] < 0 ||
        __builtin_mul_overflow(product, std::max<int64_t>(sizes[i], 1),
                               &product)) {
      return false;
    }
    empty = empty || sizes[i] == 0;
    if (empty) continue;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) ||
        __builtin_add_overflow(last, step, &last)) {
      return false;
    }
  }
  elements = empty ? 0 : product;
  return true;
}

}  // namespace

absl::StatusOr<StoredTensor> ViewOfStorage(const std::string& where,
                                           const StoredTensor& storage,
                                           int64_t offset,
                                           std::vector<int64_t> sizes,
                                           std::vector<int64_t> strides) {
  // Checked first, because later messages list all of them.
  if (sizes.size() != strides.size() || sizes.size() > kMaxDimensions) {
    return absl::InvalidArgumentError(
        StrCat(where, ": a tensor with ", sizes.size(), " sizes and ",
               strides.size(), " strides; at most ", kMaxDimensions,
               " dimensions are supported, with one size and one stride each"));
  }
  const int64_t stored = storage.rows();
  int64_t elements = 0, last = 0;
  const bool valid = Measure(offset, sizes, strides, elements, last) &&
                     elements <= stored && (elements == 0 || last < stored);
  if (!valid) {
    return absl::InvalidArgumentError(
        StrCat(where, ": a tensor of shape [", absl::StrJoin(sizes, ", "),
               "], strides [", absl::StrJoin(strides, ", "), "] and offset ",
               offset, " does not fit its storage of ", stored,
               " elements\nsave it again after .contiguous()"));
  }
  StoredTensor view = storage;
  if (elements > 0) {
    view.data += offset * ElementBytes(storage.format.type);
  }
  view.sizes = std::move(sizes);
  view.strides = std::move(strides);
  return view;
}

}  // namespace millrace
