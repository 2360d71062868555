// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/process_metrics.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/unique_fd.h"

namespace millrace {
namespace {

// The value of a metric that has no labels; -1 if it is missing.
double Metric(const std::string& name) {
  for (const prometheus::MetricFamily& family : ProcessMetrics()) {
    if (family.name != name) continue;
    const prometheus::ClientMetric& metric = family.metric.at(0);
    return family.type == prometheus::MetricType::Counter ? metric.counter.value
                                                          : metric.gauge.value;
  }
  return -1;
}

// The first number of a line "NAME: NUMBER" of /proc/self/status.
double StatusLine(const std::string& name) {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word && word != name + ":") {
  }
  double number = -1;
  file >> number;
  return number;
}

TEST(ProcessMetricsTest, MemoryIsThatOfTheKernel) {
  // Others of the process's pages may come and go between the two reads.
  EXPECT_NEAR(Metric("process_resident_memory_bytes"),
              StatusLine("VmRSS") * 1024, 4 << 20);
  EXPECT_NEAR(Metric("process_virtual_memory_bytes"),
              StatusLine("VmSize") * 1024, 1 << 20);
}

TEST(ProcessMetricsTest, ResidentMemoryGrowsByWhatIsTouched) {
  const double before = Metric("process_resident_memory_bytes");
  const std::vector<char> touched(64 << 20, 'x');
  const double after = Metric("process_resident_memory_bytes");
  // AddressSanitizer takes an eighth more.
  EXPECT_NEAR(after - before, static_cast<double>(touched.size()), 12 << 20);
}

TEST(ProcessMetricsTest, CountsOpenFiles) {
  const double before = Metric("process_open_fds");
  std::vector<UniqueFd> files;
  for (int i = 0; i < 7; ++i) files.emplace_back(open("/dev/null", O_RDONLY));
  EXPECT_EQ(Metric("process_open_fds"), before + 7);
  files.clear();
  EXPECT_EQ(Metric("process_open_fds"), before);
}

TEST(ProcessMetricsTest, LimitOnFilesIsTheSoftOne) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit lower = {limit.rlim_cur - 1, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &lower), 0);
  EXPECT_EQ(Metric("process_max_fds"), static_cast<double>(limit.rlim_cur - 1));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(ProcessMetricsTest, CountsThreads) {
  const double before = Metric("process_threads");
  EXPECT_EQ(before, StatusLine("Threads"));
  absl::Notification end;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&end] { end.WaitForNotification(); });
  }
  EXPECT_EQ(Metric("process_threads"), before + 3);
  end.Notify();
  for (std::thread& thread : threads) thread.join();
}

TEST(ProcessMetricsTest, CpuTimeGrowsWithWork) {
  const double before = Metric("process_cpu_seconds_total");
  const absl::Time start = absl::Now();
  double used = 0;
  // A busy machine may take long to grant a process 50 ms.
  while (used < 0.05 && absl::Now() - start < absl::Minutes(1)) {
    used = Metric("process_cpu_seconds_total") - before;
  }
  EXPECT_GE(used, 0.05);
  EXPECT_LE(used, absl::ToDoubleSeconds(absl::Now() - start) + 0.1);
}

TEST(ProcessMetricsTest, StartTimeIsWhenTheProcessStarted) {
  const double start = Metric("process_start_time_seconds");
  const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  std::ifstream uptime_file("/proc/uptime");
  double uptime = 0;
  uptime_file >> uptime;
  std::ifstream stat_file("/proc/self/stat");
  const std::string stat{std::istreambuf_iterator<char>(stat_file), {}};
  const std::vector<std::string> fields = absl::StrSplit(stat, ' ');
  double ticks = 0;
  ASSERT_TRUE(absl::SimpleAtod(fields.at(21), &ticks));
  const double age = uptime - ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_NEAR(start, now - age, 1.5);
  EXPECT_EQ(Metric("process_start_time_seconds"), start);
}

TEST(ProcessMetricsTest, NamesTheBuild) {
  const std::string text = PrintMetrics(ProcessMetrics());
  EXPECT_NE(text.find("\nmillrace_build_info{version=\""), std::string::npos)
      << text;
  EXPECT_NE(text.find("\",cuda=\""), std::string::npos) << text;
}

}  // namespace
}  // namespace millrace
