// SPDX-License-Identifier: Apache-2.0
#include "common/base/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

#include "absl/time/time.h"

namespace millrace {
namespace {

rusage Usage() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

// When the system started, in seconds of Unix time; 0 if that is unknown. Slow
// where there are many CPUs, since the file is long.
double BootUnixSeconds() {
  std::ifstream file("/proc/stat");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    double seconds = 0;
    if (words >> name >> seconds && name == "btime") return seconds;
  }
  return 0;
}

// The fields of /proc/self/stat from the third on; proc(5) numbers them from 1.
// The second one, the program's name in parentheses, may itself contain spaces
// and parentheses. Empty if the file cannot be read.
std::istringstream StatFields() {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = text.rfind(')');
  return std::istringstream(
      name_end == std::string::npos ? "" : text.substr(name_end + 1));
}

}  // namespace

double ProcessCpuSeconds() {
  const rusage usage = Usage();
  return absl::ToDoubleSeconds(absl::DurationFromTimeval(usage.ru_utime) +
                               absl::DurationFromTimeval(usage.ru_stime));
}

int64_t ProcessPeakRssBytes() { return int64_t{Usage().ru_maxrss} * 1024; }

ProcessState ReadProcessState() {
  std::istringstream fields = StatFields();
  ProcessState state;
  std::string skipped;
  for (int field = 3; field < 20; ++field) fields >> skipped;
  uint64_t resident_pages = 0;
  fields >> state.threads >> skipped >> skipped >> state.virtual_bytes >>
      resident_pages;
  state.resident_bytes =
      resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return state;
}

double ProcessStartUnixSeconds() {
  static const double start = [] {
    std::istringstream fields = StatFields();
    std::string skipped;
    for (int field = 3; field < 22; ++field) fields >> skipped;
    double ticks = 0;
    fields >> ticks;
    return BootUnixSeconds() +
           ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  }();
  return start;
}

uint64_t OpenFileDescriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator all("/proc/self/fd", error);
  uint64_t count = 0;
  for (auto fd = begin(all); !error && fd != end(all); fd.increment(error)) {
    ++count;
  }
  return count > 0 ? count - 1 : 0;  // without the one that reads the directory
}

uint64_t MaxFileDescriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace millrace
