// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/nn/parameters.h"

namespace millrace {

// All that a run needs to go on at an exact batch. As a file: a dictionary of
// plain dictionaries, numbers, strings and tensors in the format of
// torch.save, which Python's torch.load reads with its defaults; "model" is a
// state_dict, by PyG's names or those of a script.
struct Checkpoint {
  std::vector<NamedTensor> model;      // parameters and buffers
  std::vector<NamedTensor> optimizer;  // see Optimizer::State
  // What differs between the ranks, one row each: see TrainStep::RankBuffers.
  std::vector<NamedTensor> ranks;
  // What must be equal for a run to go on: job, store and model by option.
  std::map<std::string, std::string> identity;
  // Where the run is: "epoch", "next_batch", "optimizer_steps", ...
  std::map<std::string, int64_t> counters;
  // Sums of the epoch so far and results so far: "loss_sum", "best_valid", ...
  std::map<std::string, double> values;
};

// The bytes of a file. INTERNAL: what LibTorch says.
absl::StatusOr<std::vector<char>> SerializeCheckpoint(
    const Checkpoint& checkpoint);
// Writes those bytes to PATH.tmp, fsyncs, renames and fsyncs the folder, which
// is there: `path` is the old file or the new one, whole, and nothing is left
// beside it. Errors of FileError, naming `path`.
absl::Status WriteCheckpoint(const std::filesystem::path& path,
                             const Checkpoint& checkpoint);
// Where WriteCheckpoint writes first.
std::filesystem::path TemporaryOf(const std::filesystem::path& path);
// Executes nothing. DATA_LOSS: not the bytes of a checkpoint, or damaged ones:
// a wrong checksum, a tensor that its storage has no room for. `origin` names
// the file.
absl::StatusOr<Checkpoint> ParseCheckpoint(const std::vector<char>& bytes,
                                           const std::string& origin);

// OK when both are equal; FAILED_PRECONDITION names the first option that
// differs and both values.
absl::Status CheckSameIdentity(
    const std::map<std::string, std::string>& saved,
    const std::map<std::string, std::string>& wanted);

}  // namespace millrace
