// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/colocated_server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace millrace {
namespace {

// Without a descriptor for it, nobody could stop the server's thread.
TEST(ColocatedServerTest, FailsIfNoFileCanBeOpened) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(STDERR_FILENO);
  ASSERT_GE(next, 0);
  close(next);
  const rlimit none = {static_cast<rlim_t>(next), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto server = ColocatedServer::Start("the server", {});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(server.status(),
            absl::InternalError("the server cannot be started: eventfd: Too "
                                "many open files"));
}

}  // namespace
}  // namespace millrace
