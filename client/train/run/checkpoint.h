// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/nn/parameters.h"

namespace millrace {

// All that a run needs to resume at an exact batch. The file is a dictionary of
// plain dictionaries, numbers, strings and tensors in the format of torch.save,
// which Python's torch.load reads with its defaults; "model" is a state_dict
// with PyG's names or those of a script.
struct Checkpoint {
  std::vector<NamedTensor> model;      // parameters and buffers
  std::vector<NamedTensor> optimizer;  // see Optimizer::State
  // What differs between the ranks, one row each: see TrainStep::RankBuffers.
  std::vector<NamedTensor> ranks;
  // What must be equal to resume: job, store and model, by option.
  std::map<std::string, std::string> identity;
  // The position of the run: "epoch", "next_batch", "optimizer_steps", ...
  std::map<std::string, int64_t> counters;
  // Sums of the epoch so far and results so far: "loss_sum", "best_valid", ...
  std::map<std::string, double> values;
};

// Returns the bytes of a file. INTERNAL: LibTorch failed.
absl::StatusOr<std::string> SerializeCheckpoint(const Checkpoint& checkpoint);
// Writes those bytes to TemporaryOf(path) and renames it, with fsyncs of the
// file and of its folder, which must exist. So `path` always holds a complete
// file, the old or the new one, and nothing else is left behind. Fails like
// FileError, naming `path`.
absl::Status WriteCheckpoint(const std::filesystem::path& path,
                             const Checkpoint& checkpoint);
// The file that WriteCheckpoint writes first.
std::filesystem::path TemporaryOf(const std::filesystem::path& path);
// Reads a checkpoint from `bytes` of the file `origin`, without executing
// anything in them. DATA_LOSS: they are not a checkpoint, or damaged (a wrong
// checksum, a tensor that does not fit in its storage).
absl::StatusOr<Checkpoint> ParseCheckpoint(std::string_view bytes,
                                           const std::string& origin);

// FAILED_PRECONDITION: an option in `wanted` has a different value in `saved`
// (names the first and both values).
absl::Status CheckSameIdentity(
    const std::map<std::string, std::string>& saved,
    const std::map<std::string, std::string>& wanted);

}  // namespace millrace
