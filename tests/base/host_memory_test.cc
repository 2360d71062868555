// SPDX-License-Identifier: Apache-2.0
#include "common/base/host_memory.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

namespace millrace {
namespace {

const auto kPage = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));

// Writes files like those of Linux to a directory of the test.
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
            (root_ / "groups").string(), (root_ / "statm").string()};
  }

  const std::filesystem::path root_ =
      std::filesystem::path(::testing::TempDir()) / "host_memory";
};

TEST_F(HostMemoryTest, WithoutCgroupsReportsTheHostsMemory) {
  EXPECT_GT(HostMemoryBytes(files()),
            9000u << 10);  // the memory of this machine
  EXPECT_EQ(AvailableMemoryBytes(files()), 8000u << 10);
}

TEST_F(HostMemoryTest, CgroupWithoutALimitReportsTheHostsMemory) {
  Write("cgroup", "0::/\n");
  Write("groups/memory.max", "max\n");
  Write("groups/memory.current", "5000\n");
  EXPECT_GT(HostMemoryBytes(files()), 9000u << 10);
  EXPECT_EQ(AvailableMemoryBytes(files()), 8000u << 10);
}

// Pages of files can be reclaimed; those of shared memory, which "file"
// includes, cannot.
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

TEST_F(HostMemoryTest, TheTightestEnclosingCgroupCounts) {
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

// A container sees only its own groups, but is given its path on the host.
TEST_F(HostMemoryTest, ContainersLimitIsFoundAtTheRoot) {
  Write("cgroup", "4:memory:/docker/1f\n");
  Write("groups/memory/memory.limit_in_bytes", "1000000\n");
  Write("groups/memory/memory.usage_in_bytes", "400000\n");
  EXPECT_EQ(HostMemoryBytes(files()), 1000000u);
  EXPECT_EQ(AvailableMemoryBytes(files()), 600000u);
}

TEST(ThisHostMemoryTest, AvailableIsPositiveAndAtMostTheTotal) {
  EXPECT_GT(AvailableMemoryBytes(), 0u);
  EXPECT_LE(AvailableMemoryBytes(), HostMemoryBytes());
}

// The tests that set this limit run in a child process, because the limit is
// permanent. It is far above what a process with sanitizers uses.
constexpr uint64_t kAddressSpace = uint64_t{1} << 50;
void LimitAddressSpace() {
  rlimit limit{};
  limit.rlim_cur = limit.rlim_max = kAddressSpace;
  setrlimit(RLIMIT_AS, &limit);
}

TEST_F(HostMemoryTest, LimitOfAddressSpaceCounts) {
  Write("meminfo", "MemAvailable: 1125899906842624 kB\n");
  Write("statm", "3 2 1\n");  // pages
  EXPECT_EXIT(
      {
        LimitAddressSpace();
        const uint64_t left = kAddressSpace - 3 * kPage;
        _exit(AvailableMemoryBytes(files()) == left ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(HostMemoryTest, ProcessesTogetherMustFitTheHost) {
  Write("meminfo", "MemAvailable: 1000000 kB\n");
  const auto check = [this](uint64_t process, uint64_t host) {
    return CheckMemory("a table in 4 processes", {process, host}, "use less",
                       files());
  };
  EXPECT_TRUE(check(256'000'000, 1'024'000'000).ok());
  EXPECT_EQ(
      check(256'000'001, 1'024'000'004).message(),
      "a table in 4 processes needs 976.6 MiB of memory, but 976.6 MiB is "
      "available\nuse less");
}

// 1 GiB remains below the limit.
TEST_F(HostMemoryTest, EachProcessMustFitItsOwnLimitOfAddressSpace) {
  constexpr uint64_t kLeft = uint64_t{1} << 30;
  Write("meminfo", "MemAvailable: 1125899906842624 kB\n");
  Write("statm", std::to_string((kAddressSpace - kLeft) / kPage));
  EXPECT_EXIT(
      {
        LimitAddressSpace();
        const auto check = [this](uint64_t process, uint64_t host) {
          return CheckMemory("a table", {process, host}, "use less", files());
        };
        std::cerr << check(kLeft, 4 * kLeft).message()
                  << check(kLeft + 1, 4 * kLeft + 4).message() << "; "
                  << check(kLeft + 1, kLeft + 1).message();
        _exit(0);
      },
      ::testing::ExitedWithCode(0),
      "^a table needs 1.0 GiB of memory in one process, but 1.0 GiB is "
      "available within ulimit -v\nuse less; "
      "a table needs 1.0 GiB of memory, but 1.0 GiB is available within ulimit "
      "-v\nuse less$");
}

// Smaller allocations are not worth reading several files for.
TEST_F(HostMemoryTest, ChecksAllocationsAbove16MiB) {
  Write("meminfo", "MemAvailable: 1 kB\n");
  const uint64_t unchecked = 16 << 20;
  const auto check = [this](uint64_t bytes, std::string_view advice) {
    return CheckMemory("a table", {bytes, bytes}, advice, files());
  };
  EXPECT_TRUE(check(unchecked, "use less").ok());
  const absl::Status refused = check(unchecked + 1, "");
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(refused.message(),
            "a table needs 16.0 MiB of memory, but 1.0 KiB is available");
  EXPECT_EQ(check(unchecked + 1, "use less").message(),
            "a table needs 16.0 MiB of memory, but 1.0 KiB is available\nuse "
            "less");
}

TEST_F(HostMemoryTest, NothingIsAvailableInAFullCgroup) {
  Write("cgroup", "0::/\n");
  Write("groups/memory.max", "1000000\n");
  Write("groups/memory.current", "1200000\n");
  EXPECT_EQ(AvailableMemoryBytes(files()), 0u);
  // Files may count for more than the group uses at the same moment.
  Write("groups/memory.stat", "inactive_file 9000000\nactive_file 1\n");
  EXPECT_EQ(AvailableMemoryBytes(files()), 1000000u);
}

TEST(CheckMemoryTest, NamesTheRequestedAndTheAvailableMemory) {
  EXPECT_TRUE(CheckMemory("a table", 1, "use less").ok());
  const absl::Status status =
      CheckMemory("a table of 9 rows", uint64_t{1} << 60, "use less");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              ::testing::MatchesRegex("a table of 9 rows needs 1.0 EiB of "
                                      "memory, but [0-9.]+ [KMGTP]iB is "
                                      "available\nuse less"));
}

TEST(SaturatedProductTest, StopsAtTheLargestNumber) {
  EXPECT_EQ(SaturatedProduct({}), 1u);
  EXPECT_EQ(SaturatedProduct({3, 4, 5}), 60u);
  const int64_t large = int64_t{1} << 40;
  EXPECT_EQ(SaturatedProduct({large, large, 2}), UINT64_MAX);
  EXPECT_EQ(SaturatedProduct({large, large, 0}), 0u);
  EXPECT_EQ(SaturatedProduct({large, -1}), 0u);
  EXPECT_EQ(SaturatedProduct({large, int64_t{1} << 23, 2}), UINT64_MAX);
  EXPECT_EQ(SaturatedProduct({large, int64_t{1} << 23}), uint64_t{1} << 63);
}

TEST(SaturatedSumTest, StopsAtTheLargestNumber) {
  EXPECT_EQ(SaturatedSum({}), 0u);
  EXPECT_EQ(SaturatedSum({3, 4, 5}), 12u);
  EXPECT_EQ(SaturatedSum({UINT64_MAX - 1, 1}), UINT64_MAX);
  EXPECT_EQ(SaturatedSum({UINT64_MAX, 1, 7}), UINT64_MAX);
}

}  // namespace
}  // namespace millrace
