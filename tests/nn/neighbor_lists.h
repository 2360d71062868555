// SPDX-License-Identifier: Apache-2.0
// Neighbour lists as tests of layers need them.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "client/nn/layer.h"

namespace millrace::testing {

// An int32 vector.
inline at::Tensor Ints(const std::vector<int32_t>& values) {
  at::Tensor tensor =
      at::empty({static_cast<int64_t>(values.size())}, at::kInt);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<int32_t>());
  return tensor;
}

// Lists of 0 to 9 neighbours for each of `rows` rows, with some repetitions.
inline Neighbors RandomLists(int64_t rows, int64_t sources) {
  std::mt19937 random(3);
  std::vector<int32_t> indptr = {0}, index;
  for (int64_t i = 0; i < rows; ++i) {
    const auto length = static_cast<int>(random() % 10);
    for (int k = 0; k < length; ++k) {
      index.push_back(static_cast<int32_t>(random() % sources));
    }
    indptr.push_back(static_cast<int32_t>(index.size()));
  }
  return {Ints(indptr), Ints(index), {}, {}};
}

}  // namespace millrace::testing
