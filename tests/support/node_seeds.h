// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/sample/seed_list.h"

namespace millrace::testing {

// A SeedList of nodes, with only the columns that node seeds have.
struct Seeds {
  std::vector<int64_t> ids;
  std::vector<int64_t> times = {};

  operator SeedList() const {  // NOLINT: converts implicitly
    SeedList list;
    list.ids = ids;
    list.times = times;
    return list;
  }
};

}  // namespace millrace::testing
