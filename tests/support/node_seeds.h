// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/sample/explicit_seeds.h"

namespace millrace::testing {

// ExplicitSeeds of nodes, with only the columns that node seeds have.
struct Seeds {
  std::vector<int64_t> ids;
  std::vector<int64_t> times = {};

  operator ExplicitSeeds() const {  // NOLINT: converts implicitly
    ExplicitSeeds list;
    list.ids = ids;
    list.times = times;
    return list;
  }
};

}  // namespace millrace::testing
