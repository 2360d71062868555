// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/sample/seed_list.h"

namespace millrace::testing {

// A SeedList of nodes, by the columns that those have.
struct Seeds {
  std::vector<int64_t> ids;
  std::vector<int64_t> times = {};

  operator SeedList() const {  // NOLINT: stands for one
    SeedList list;
    list.ids = ids;
    list.times = times;
    return list;
  }
};

}  // namespace millrace::testing
