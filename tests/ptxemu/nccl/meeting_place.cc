// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/nccl/meeting_place.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/round_up.h"
#include "common/base/unique_fd.h"
#include "tests/ptxemu/nccl/sum.h"
#include "tests/ptxemu/settings.h"

namespace millrace::ncclemu {

struct MeetingPlace::Header {
  AdditionOrder order;
  uint64_t seed;
  std::atomic<int> ranks;  // as the first one says that comes
  std::atomic<int> present;
  Seat seats[kMaxRanks];
};

namespace {

constexpr int kAbandonedSeconds = 60;

std::string PathOf(const std::string& id) {
  return GetNcclSettings().folder + "/" + id;
}

// When a process started, in clock ticks; 0 if it is dead.
uint64_t StartOf(int process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/stat"));
  std::string text;
  std::getline(file, text);
  // The name, field 2, may hold spaces, and ends with the last parenthesis. The
  // state is field 3, the start field 22.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string state;
  std::string skipped;
  fields >> state;
  if (state.empty() || state == "Z" || state == "X") return 0;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  uint64_t start = 0;
  fields >> start;
  return start;
}

// Removes the files of processes that died before all ranks had come.
void RemoveAbandoned() {
  std::error_code error;
  for (const auto& file :
       std::filesystem::directory_iterator(GetNcclSettings().folder, error)) {
    int process = 0;
    struct stat about = {};
    if (std::sscanf(file.path().filename().c_str(), "ncclemu-%d-", &process) !=
            1 ||
        StartOf(process) != 0 || stat(file.path().c_str(), &about) != 0) {
      continue;
    }
    if (std::time(nullptr) - about.st_mtime > kAbandonedSeconds) {
      unlink(file.path().c_str());
    }
  }
}

void RemoveAtExit(const std::string& path) {
  static std::string* last = nullptr;
  if (last == nullptr) std::atexit([] { unlink(last->c_str()); });
  last = new std::string(path);
}

}  // namespace

std::string ToText(const Description& description) {
  const bool has_root = description.kind == OperationKind::kBroadcast;
  return absl::StrCat(has_root ? "ncclBroadcast(" : "ncclAllReduce(",
                      description.count, " x ", NameOf(description.type),
                      has_root ? absl::StrCat(", root ", description.root) : "",
                      ")");
}

bool MeetingPlace::Create(const std::string& id) {
  RemoveAbandoned();
  const std::string path = PathOf(id);
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  if (fd.get() < 0 || ftruncate(fd.get(), sizeof(Header)) != 0) return false;
  void* const mapped = mmap(nullptr, sizeof(Header), PROT_READ | PROT_WRITE,
                            MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) return false;
  auto* const header = static_cast<Header*>(mapped);
  header->order = GetNcclSettings().order;
  header->seed = ptxemu::GetSettings().seed;
  munmap(mapped, sizeof(Header));
  RemoveAtExit(path);
  return true;
}

std::unique_ptr<MeetingPlace> MeetingPlace::Open(const std::string& id,
                                                 int ranks) {
  const std::string path = PathOf(id);
  const UniqueFd fd(open(path.c_str(), O_RDWR));
  // Windows are holes in the file until they are written.
  const size_t bytes =
      RoundUp(sizeof(Header), 4096) + size_t{2} * ranks * kWindowBytes;
  if (fd.get() < 0 || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return nullptr;
  }
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (mapped == MAP_FAILED) return nullptr;
  return std::unique_ptr<MeetingPlace>(
      new MeetingPlace(path, ranks, static_cast<Header*>(mapped), bytes));
}

MeetingPlace::MeetingPlace(std::string path, int ranks, Header* header,
                           size_t bytes)
    : path_(std::move(path)), ranks_(ranks), header_(header), bytes_(bytes) {}

MeetingPlace::~MeetingPlace() { munmap(header_, bytes_); }

std::string MeetingPlace::TakeSeat(int rank, int device) {
  int ranks = 0;
  if (!header_->ranks.compare_exchange_strong(ranks, ranks_) &&
      ranks != ranks_) {
    return absl::StrCat("there are ", ranks_, " ranks, but another rank says ",
                        ranks);
  }
  Seat& own = seat(rank);
  if (own.is_taken.exchange(1) != 0) return "another process is this rank";
  own.process = getpid();
  own.process_start = StartOf(own.process);
  own.device = device;
  own.is_ready = 1;
  if (++header_->present == ranks_) unlink(path_.c_str());
  return "";
}

Seat& MeetingPlace::seat(int rank) const { return header_->seats[rank]; }

bool MeetingPlace::IsPresent(int rank) const {
  const Seat& other = seat(rank);
  return other.is_ready != 0 && other.has_left == 0 &&
         StartOf(other.process) == other.process_start;
}

uint8_t* MeetingPlace::Window(int rank, uint64_t number) const {
  return reinterpret_cast<uint8_t*>(header_) + RoundUp(sizeof(Header), 4096) +
         (size_t{2} * rank + number % 2) * kWindowBytes;
}

AdditionOrder MeetingPlace::order() const { return header_->order; }

uint64_t MeetingPlace::seed() const { return header_->seed; }

}  // namespace millrace::ncclemu
