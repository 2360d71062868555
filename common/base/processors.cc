// SPDX-License-Identifier: Apache-2.0
#include "common/base/processors.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <thread>

namespace millrace {
namespace {

struct FreeSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

// More than any kernel can have.
constexpr size_t kMostProcessors = size_t{1} << 20;

}  // namespace

// The kernel refuses sets that have no room for all its processors.
int UsableProcessors() {
  for (size_t room = CPU_SETSIZE; room <= kMostProcessors; room *= 2) {
    const std::unique_ptr<cpu_set_t, FreeSet> set(CPU_ALLOC(room));
    const size_t bytes = CPU_ALLOC_SIZE(room);
    if (set == nullptr) break;
    if (sched_getaffinity(/*pid=*/0, bytes, set.get()) == 0) {
      return std::max(1, CPU_COUNT_S(bytes, set.get()));
    }
    if (errno != EINVAL) break;
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace millrace
