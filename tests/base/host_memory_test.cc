// SPDX-License-Identifier: Apache-2.0
#include "common/base/host_memory.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
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

// In a child: the limit is for ever. It is far above what a process with
// sanitizers has.
TEST_F(HostMemoryTest, LimitOfAddressSpaceCounts) {
  Write("meminfo", "MemAvailable: 1125899906842624 kB\n");
  Write("statm", "3 2 1\n");  // pages
  EXPECT_EXIT(
      {
        MemoryFiles limited = files();
        limited.statm = (root_ / "statm").string();
        rlimit limit{};
        limit.rlim_cur = limit.rlim_max = rlim_t{1} << 50;
        setrlimit(RLIMIT_AS, &limit);
        const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
        const uint64_t left = (uint64_t{1} << 50) - 3 * page;
        _exit(AvailableMemoryBytes(limited) == left ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(CheckMemoryTest, NamesWhatWasWantedAndWhatThereIs) {
  EXPECT_TRUE(CheckMemory("a table", 1, "use less").ok());
  const absl::Status status =
      CheckMemory("a table of 9 rows", uint64_t{1} << 60, "use less");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              ::testing::MatchesRegex("a table of 9 rows needs 1.2 EB of "
                                      "memory, but [0-9.]+ [kMGTP]B are "
                                      "available\nuse less"));
}

TEST(SaturatedProductTest, StopsAtTheLargestNumber) {
  EXPECT_EQ(SaturatedProduct({}), 1u);
  EXPECT_EQ(SaturatedProduct({3, 4, 5}), 60u);
  const int64_t large = int64_t{1} << 40;
  EXPECT_EQ(SaturatedProduct({large, large, 2}), UINT64_MAX);
  EXPECT_EQ(SaturatedProduct({large, large, 0}), 0u);
}

TEST(SaturatedSumTest, StopsAtTheLargestNumber) {
  EXPECT_EQ(SaturatedSum({}), 0u);
  EXPECT_EQ(SaturatedSum({3, 4, 5}), 12u);
  EXPECT_EQ(SaturatedSum({UINT64_MAX - 1, 1}), UINT64_MAX);
  EXPECT_EQ(SaturatedSum({UINT64_MAX, 1, 7}), UINT64_MAX);
}

TEST(BytesTextTest, ChoosesAUnit) {
  EXPECT_EQ(BytesText(999), "999 bytes");
  EXPECT_EQ(BytesText(1000), "1.0 kB");
  EXPECT_EQ(BytesText(999'960), "1.0 MB");
  EXPECT_EQ(BytesText(24'227'972'000), "24.2 GB");
  EXPECT_EQ(BytesText(UINT64_MAX), "18.4 EB");
}

}  // namespace
}  // namespace millrace
