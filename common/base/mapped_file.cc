// SPDX-License-Identifier: Apache-2.0
#include "common/base/mapped_file.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/base/const_init.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace millrace {
namespace {

// The registry of maps. A signal handler reads it, so entries live in blocks
// that are never freed and change by atomic stores only; `begin` is 0 in a
// free one and is set last.
struct Entry {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::atomic<const char*> name{nullptr};
};
struct Block {
  std::array<Entry, 512> entries;
  std::atomic<Block*> next{nullptr};
};
Block first_block;
absl::Mutex registry_mutex(absl::kConstInit);  // held by writers

Entry* FindEntry(uintptr_t address) {
  for (Block* block = &first_block; block != nullptr; block = block->next) {
    for (Entry& entry : block->entries) {
      const uintptr_t begin = entry.begin;
      if (begin != 0 && begin <= address && address < entry.end) return &entry;
    }
  }
  return nullptr;
}

void Register(const void* data, size_t bytes, const char* name) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  absl::MutexLock lock(&registry_mutex);
  for (Block* block = &first_block;; block = block->next) {
    for (Entry& entry : block->entries) {
      if (entry.begin != 0) continue;
      entry.name = name;
      entry.end = begin + bytes;
      entry.begin = begin;
      return;
    }
    // Reachable for the rest of the process, like the first block.
    if (block->next == nullptr) block->next = new Block;
  }
}

void Unregister(const void* data) {
  absl::MutexLock lock(&registry_mutex);
  if (Entry* entry = FindEntry(reinterpret_cast<uintptr_t>(data))) {
    entry->begin = 0;
  }
}

void Say(const char* text) {
  [[maybe_unused]] const ssize_t ignored =
      write(STDERR_FILENO, text, std::strlen(text));
}

// Only async-signal-safe calls from here on.
void OnBusError(int, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (const Entry* entry = FindEntry(address)) {
    Say(entry->name);
    Say(" was truncated or became unreadable while it was mapped\n"
        "restore the file and start again\n");
    _exit(1);
  }
  // Not ours: returning runs the same instruction into the default action.
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
  void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return FileError("map", path, errno);
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path.string(), static_cast<const char*>(data), size));
}

MappedFile::MappedFile(std::string name, const char* data, size_t size)
    : name_(std::move(name)), data_(data), size_(size) {
  Register(data_, size_, name_.c_str());
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

}  // namespace millrace
