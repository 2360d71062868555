// SPDX-License-Identifier: Apache-2.0
#include "common/file/mapped_file.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/file/file.h"

namespace millrace {
namespace {

// The registry of mappings. A signal handler reads it, so entries live in
// blocks that are never freed, and change by atomic stores only. `begin` is set
// last; it is 0 in a free entry.
struct Entry {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::atomic<const char*> name{nullptr};
  // Identify the file even if it is renamed. Not read by the signal handler.
  uint64_t device = 0, inode = 0;
};
struct Block {
  std::array<Entry, 512> entries;
  std::atomic<Block*> next{nullptr};
};
Block first_block;
constinit Mutex registry_mutex;  // held when changing entries

Entry* FindEntry(uintptr_t address) {
  for (Block* block = &first_block; block != nullptr; block = block->next) {
    for (Entry& entry : block->entries) {
      const uintptr_t begin = entry.begin;
      if (begin != 0 && begin <= address && address < entry.end) return &entry;
    }
  }
  return nullptr;
}

void Register(std::string_view bytes, const char* name, uint64_t device,
              uint64_t inode) {
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  MutexLock lock(&registry_mutex);
  for (Block* block = &first_block;; block = block->next) {
    for (Entry& entry : block->entries) {
      if (entry.begin != 0) continue;
      entry.name = name;
      entry.device = device;
      entry.inode = inode;
      entry.end = begin + bytes.size();
      entry.begin = begin;
      return;
    }
    // Never freed; stays reachable, like the first block.
    if (block->next == nullptr) block->next = new Block;
  }
}

void Unregister(const void* data) {
  MutexLock lock(&registry_mutex);
  if (Entry* entry = FindEntry(reinterpret_cast<uintptr_t>(data))) {
    entry->begin = 0;
  }
}

// A copy of an entry.
struct Mapped {
  uintptr_t begin = 0;
  std::string name;
  uint64_t bytes = 0, device = 0, inode = 0;
  friend bool operator==(const Mapped&, const Mapped&) = default;
};

std::vector<Mapped> AllMapped() {
  std::vector<Mapped> all;
  MutexLock lock(&registry_mutex);
  for (Block* block = &first_block; block != nullptr; block = block->next) {
    for (Entry& entry : block->entries) {
      if (entry.begin == 0) continue;
      all.push_back({entry.begin, entry.name.load(), entry.end - entry.begin,
                     entry.device, entry.inode});
    }
  }
  return all;
}

// Looks the file up by name, since holding a descriptor open for each file
// would take too many. If another file has taken its name, the mapped one is
// unharmed.
bool IsShorter(const Mapped& mapped) {
  struct stat info = {};
  return stat(mapped.name.c_str(), &info) == 0 &&
         info.st_dev == mapped.device && info.st_ino == mapped.inode &&
         static_cast<uint64_t>(info.st_size) < mapped.bytes;
}

bool IsStillMapped(const Mapped& mapped) {
  const std::vector<Mapped> all = AllMapped();
  return std::find(all.begin(), all.end(), mapped) != all.end();
}

void Say(const char* text) {
  [[maybe_unused]] const ssize_t ignored =
      write(STDERR_FILENO, text, std::strlen(text));
}

// EndOfFile() and OnBusError() may make only async-signal-safe calls.
[[noreturn]] void EndOfFile(const char* name) {
  Say(name);
  Say(" was truncated or became unreadable while it was mapped\n"
      "restore the file and start again\n");
  _exit(1);
}

void OnBusError(int, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (const Entry* entry = FindEntry(address)) EndOfFile(entry->name);
  // The address is not in a mapped file. Returning repeats the instruction, and
  // this time the signal has its default action.
  signal(SIGBUS, SIG_DFL);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(
    const std::filesystem::path& path) {
  uint64_t size = 0;
  MILLRACE_ASSIGN_OR_RETURN(const UniqueFd fd, OpenForReading(path, &size));
  if (size == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path.native(), " is empty"));
  }
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return FileError("stat", path, errno);
  void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return FileError("map", path, errno);
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path.string(), {static_cast<const char*>(data), size},
                     info.st_dev, info.st_ino));
}

MappedFile::MappedFile(std::string name, std::string_view bytes,
                       uint64_t device, uint64_t inode)
    : name_(std::move(name)), data_(bytes.data()), size_(bytes.size()) {
  Register(bytes, name_.c_str(), device, inode);
}

MappedFile::~MappedFile() {
  Unregister(data_);
  munmap(const_cast<char*>(data_), size_);
}

bool IsMapped(const void* data, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const Entry* entry = FindEntry(begin);
  return entry != nullptr && bytes <= entry->end - begin;
}

void InstallTruncationHandler() {
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

TruncationWatch::TruncationWatch(absl::Duration period) {
  // The new thread inherits the mask, so that signals go to the threads that
  // wait for them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, period] { Run(period); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TruncationWatch::~TruncationWatch() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    stop_.NotifyOne();
  }
  thread_.join();
}

void TruncationWatch::Run(absl::Duration period) {
  while (true) {
    {
      MutexLock lock(&mutex_);
      const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_;
      };
      if (stop_.WaitFor(&mutex_, period, stopping)) return;
    }
    for (const Mapped& mapped : AllMapped()) {
      // The file may have been unmapped in the meantime, and then truncated by
      // its owner.
      if (IsShorter(mapped) && IsStillMapped(mapped)) {
        EndOfFile(mapped.name.c_str());
      }
    }
  }
}

}  // namespace millrace
