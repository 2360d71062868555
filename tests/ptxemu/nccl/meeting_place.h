// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/ptxemu/nccl/nccl_settings.h"

namespace millrace::ncclemu {

inline constexpr int kMaxRanks = 16;
// The most that an operation may move.
inline constexpr size_t kWindowBytes = size_t{256} << 20;

enum class OperationKind : int { kAllReduce, kBroadcast };

// What a rank is about to do. All ranks must do the same.
struct Description {
  OperationKind kind;
  ncclDataType_t type;
  int root;  // 0 if the kind has none
  uint64_t count;

  bool operator==(const Description&) const = default;
};
// "ncclAllReduce(10 x float32)".
std::string ToText(const Description& description);

// What a rank tells the others. The operations of a communicator are counted
// from 0; `arrived`, `given` and `done` say how many of them the rank has
// reached, has put its data down for, and is through with.
struct alignas(64) Seat {
  std::atomic<int> is_taken;
  std::atomic<int> is_ready;  // the next three members are there
  int process;
  uint64_t process_start;  // in clock ticks
  int device;              // its number in the machine
  std::atomic<int> has_left;
  // Those of earlier operations stay for a while, so that others can look back.
  Description descriptions[4];
  std::atomic<uint64_t> arrived;
  std::atomic<uint64_t> given;
  std::atomic<uint64_t> done;
};

// Where the ranks of a communicator meet: a file in shared memory, named by the
// unique id, with a seat and two windows for each rank.
// Threads: any; the members of seats are those of the rank to write.
class MeetingPlace {
 public:
  // Makes the file, which is removed once all ranks have come, or at the end of
  // this process. Returns whether that was possible.
  static bool Create(const std::string& id);
  // Null if there is no such file, or no longer.
  static std::unique_ptr<MeetingPlace> Open(const std::string& id, int ranks);
  ~MeetingPlace();
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;

  // Takes the seat of a rank, whose device has this number. Returns what is
  // wrong, or an empty text.
  std::string TakeSeat(int rank, int device);
  Seat& seat(int rank) const;
  // Whether the rank has come, is alive and has not left.
  bool IsPresent(int rank) const;

  // Where a rank puts its data for an operation. Every second operation has the
  // same window.
  uint8_t* Window(int rank, uint64_t number) const;

  // As the process that made the unique id has them, so that they are equal for
  // all ranks.
  AdditionOrder order() const;
  uint64_t seed() const;

 private:
  struct Header;

  MeetingPlace(std::string path, int ranks, Header* header, size_t bytes);

  const std::string path_;
  const int ranks_;
  Header* const header_;
  const size_t bytes_;
};

}  // namespace millrace::ncclemu
