// SPDX-License-Identifier: Apache-2.0
#include "common/base/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>
#include <vector>

namespace millrace {
namespace {

// The processors that this thread may use.
std::vector<int> Allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> allowed;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) allowed.push_back(i);
  }
  return allowed;
}

TEST(UsableProcessorsTest, CountsThoseOfTheAffinity) {
  // A thread of its own, since the affinity stays as it is set.
  std::thread([] {
    const std::vector<int> allowed = Allowed();
    ASSERT_FALSE(allowed.empty());
    EXPECT_EQ(UsableProcessors(), static_cast<int>(allowed.size()));
    cpu_set_t set;
    CPU_ZERO(&set);
    int count = 0;
    for (const int processor : allowed) {
      CPU_SET(processor, &set);
      ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
      EXPECT_EQ(UsableProcessors(), ++count);
    }
  }).join();
}

}  // namespace
}  // namespace millrace
