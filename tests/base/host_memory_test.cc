// SPDX-License-Identifier: Apache-2.0
#include "common/base/host_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace millrace {
namespace {

// Files as Linux has them, in a folder of the test.
class HostMemoryTest : public ::testing::Test {
 protected:
  HostMemoryTest() {
    std::filesystem::remove_all(root_);
    Write("meminfo", "MemTotal: 9000 kB\nMemAvailable: 8000 kB\n");
  }

  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  MemoryFiles files() const {
    return {(root_ / "meminfo").string(), (root_ / "cgroup").string(),
            (root_ / "groups").string()};
  }

  const std::filesystem::path root_ =
      std::filesystem::path(::testing::TempDir()) / "host_memory";
};

TEST_F(HostMemoryTest, WithoutGroupsItIsTheHosts) {
  EXPECT_GT(HostMemoryBytes(files()), 9000u << 10);  // of this very host
  EXPECT_EQ(AvailableMemoryBytes(files()), 8000u << 10);
}

TEST_F(HostMemoryTest, GroupWithoutALimitHasTheHosts) {
  Write("cgroup", "0::/\n");
  Write("groups/memory.max", "max\n");
  Write("groups/memory.current", "5000\n");
  EXPECT_GT(HostMemoryBytes(files()), 9000u << 10);
  EXPECT_EQ(AvailableMemoryBytes(files()), 8000u << 10);
}

// Pages of files can be had, those of shared memory, which "file" counts too,
// cannot.
TEST_F(HostMemoryTest, SharedMemoryIsNotAvailable) {
  Write("cgroup", "0::/\n");
  Write("groups/memory.max", "1000000\n");
  Write("groups/memory.current", "700000\n");
  Write("groups/memory.stat",
        "anon 100000\nfile 600000\nshmem 350000\ninactive_anon 350000\n"
        "inactive_file 200000\nactive_file 50000\n");
  EXPECT_EQ(HostMemoryBytes(files()), 1000000u);
  EXPECT_EQ(AvailableMemoryBytes(files()), 550000u);
}

TEST_F(HostMemoryTest, LeastOfAllGroupsAroundTheProcessCounts) {
  Write("cgroup", "0::/jobs/job_7/step\n");
  Write("groups/jobs/memory.max", "3000000\n");
  Write("groups/jobs/memory.current", "2900000\n");
  Write("groups/jobs/job_7/memory.max", "2000000\n");
  Write("groups/jobs/job_7/memory.current", "500000\n");
  Write("groups/jobs/job_7/step/memory.max", "max\n");
  EXPECT_EQ(HostMemoryBytes(files()), 2000000u);
  EXPECT_EQ(AvailableMemoryBytes(files()), 100000u);
}

TEST_F(HostMemoryTest, GroupsOfVersion1AreRead) {
  Write("cgroup",
        "9:cpuset:/\n4:cpu,memory:/docker/1f\n2:name=memory:/x\n0::/\n");
  Write("groups/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("groups/memory/docker/1f/memory.limit_in_bytes", "1000000\n");
  Write("groups/memory/docker/1f/memory.usage_in_bytes", "700000\n");
  Write("groups/memory/docker/1f/memory.stat",
        "cache 600000\ntotal_cache 600000\ntotal_inactive_file 200000\n"
        "total_active_file 50000\n");
  EXPECT_EQ(HostMemoryBytes(files()), 1000000u);
  EXPECT_EQ(AvailableMemoryBytes(files()), 550000u);
}

// A container that sees its own groups only, but its path on the host.
TEST_F(HostMemoryTest, ContainersLimitIsFoundAtTheRoot) {
  Write("cgroup", "4:memory:/docker/1f\n");
  Write("groups/memory/memory.limit_in_bytes", "1000000\n");
  Write("groups/memory/memory.usage_in_bytes", "400000\n");
  EXPECT_EQ(HostMemoryBytes(files()), 1000000u);
  EXPECT_EQ(AvailableMemoryBytes(files()), 600000u);
}

TEST(ThisHostMemoryTest, SomeIsAvailableAndNotMoreThanThereIs) {
  EXPECT_GT(AvailableMemoryBytes(), 0u);
  EXPECT_LE(AvailableMemoryBytes(), HostMemoryBytes());
}

}  // namespace
}  // namespace millrace
