// SPDX-License-Identifier: Apache-2.0
// Delivers batches in plan order and fetches them before they are needed.
//
//   auto source = millrace::OpenSource({.servers = "host:7001,host:7002"});
//   millrace::JobSpec job{.fanouts = {15, 10}, .batch_size = 512};
//   auto loader = millrace::Loader::Create(*source, job, {.epochs = 3});
//   while (true) {
//     absl::StatusOr<std::optional<millrace::LoaderStep>> step =
//         (*loader)->Next();
//     if (!step.ok() || !step->has_value()) break;
//     if ((*step)->batch.has_value()) Train(*(*step)->batch);
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/sample/batch.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"

namespace millrace {

struct LoaderOptions {
  // In step k after the start, rank r gets batch first_batch + k * world + r of
  // the epoch.
  int rank = 0;
  int world = 1;

  // The epoch to start with, and the batch within it (a checkpoint's
  // next_batch). Later epochs start at batch 0.
  uint32_t first_epoch = 0;
  uint32_t first_batch = 0;
  // Number of epochs, including the first. If 0, there are no steps.
  uint32_t epochs = 1;

  // Limits of the window, that is, of the batches that have been requested but
  // not returned yet. It holds at least one batch, whatever its size, and at
  // most 4 until the first has arrived and shown how large batches are.
  int prefetch_batches = 4;
  int64_t prefetch_bytes = int64_t{1} << 30;

  Columns columns = {};
  // See BatchRequest::memory.
  std::shared_ptr<ArrayMemory> memory = nullptr;

  // Seeds to use instead of the job's split.
  std::optional<ExplicitSeeds> seeds = {};
  // Seeds of each epoch, starting at epoch 0, to use instead of the job's split
  // and of `seeds`. Every epoch must have the same number of them.
  std::vector<ExplicitSeeds> epoch_seeds = {};
};

// One step of the plan. All ranks make the same number of steps.
struct LoaderStep {
  uint32_t epoch = 0;
  uint32_t step = 0;        // counts from where the epoch was (re)started
  uint32_t next_batch = 0;  // first batch of the epoch's next step
  bool last_of_epoch = false;
  std::optional<Batch> batch;  // nullopt if this rank has none in this step
};

// Returns batches in plan order, in whatever order they arrive. Starts fetching
// the batches of the next epoch before this one ends.
// Threads: one thread calls Next(). The source is shared with its opener; if
// the loader is destroyed first, fetches in flight keep alive what they need.
class Loader {
 public:
  // Fails like ResolveJob and RequestPlan::Create. INVALID_ARGUMENT: an option
  // is out of range (names it).
  static absl::StatusOr<std::unique_ptr<Loader>> Create(
      std::shared_ptr<BatchSource> source, const JobSpec& job,
      LoaderOptions options);
  virtual ~Loader() = default;

  // Returns the next step, or nullopt when all epochs are done. Blocks until
  // the step's batch has arrived. After an error, every further call returns
  // the same one. Fails like BatchSource::Fetch. RESOURCE_EXHAUSTED: a full
  // window does not fit in memory. CANCELLED: the program was interrupted.
  virtual absl::StatusOr<std::optional<LoaderStep>> Next() = 0;

  // Whether Next() would return without waiting.
  virtual bool ready() const = 0;
  // Number of batches that have arrived and not been returned. For the thread
  // that calls Next().
  virtual int batches_waiting() const = 0;

  // Numbers of batches (of all ranks) and of steps in a whole epoch.
  virtual uint32_t batches_per_epoch() const = 0;
  virtual uint32_t steps_per_epoch() const = 0;
  // Number of steps of first_epoch from first_batch on. 0 if nothing of it is
  // left or, with drop_last, less than a whole step; Next() then begins with
  // the next epoch.
  virtual uint32_t steps_of_first_epoch() const = 0;
  // Number of seeds (of all ranks) in a whole epoch.
  virtual int64_t seeds_per_epoch() const = 0;
  // Time Next() has spent waiting so far.
  virtual absl::Duration waited() const = 0;
};

}  // namespace millrace
