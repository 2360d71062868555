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

  // Where to start: the epoch, and the batch within it (a checkpoint's
  // next_batch). Later epochs start at batch 0.
  uint32_t first_epoch = 0;
  uint32_t first_batch = 0;
  // Number of epochs, including the first. 0: nothing to do.
  uint32_t epochs = 1;

  // Size of the window, that is, of the batches fetched or in flight that were
  // not returned yet. At least one batch is in flight whatever the size, and at
  // most 4 until the first has arrived and shown how large batches are.
  int prefetch_batches = 4;
  int64_t prefetch_bytes = int64_t{1} << 30;

  Columns columns = {};

  // Seeds to use instead of the job's split.
  std::optional<SeedList> seeds = {};
  // Seeds of each epoch, starting at epoch 0, to use instead of both of the
  // above; every epoch must have equally many.
  std::vector<SeedList> epoch_seeds = {};
};

// One step of the plan. All ranks make the same number of steps.
struct LoaderStep {
  uint32_t epoch = 0;
  uint32_t step = 0;        // since the (re)start of the epoch
  uint32_t next_batch = 0;  // of the epoch, for all ranks
  bool last_of_epoch = false;
  std::optional<Batch> batch;  // nullopt: none for this rank
};

// Starts fetching the batches of the next epoch before this one ends. Returns
// batches in plan order, in whatever order they arrive.
// Threads: one thread calls Next(). The source is shared with its opener; if
// the loader is destroyed first, fetches in flight keep alive what they need.
class Loader {
 public:
  // Errors of ResolveJob and EpochPlan::Create. INVALID_ARGUMENT: an option is
  // out of range (names it).
  static absl::StatusOr<std::unique_ptr<Loader>> Create(
      std::shared_ptr<BatchSource> source, const JobSpec& job,
      LoaderOptions options);
  virtual ~Loader() = default;

  // The next step; nullopt when all epochs are done. Blocks until its batch has
  // arrived. After an error (those of BatchSource::Fetch) the loader stays at
  // this step, and every further call returns the same error.
  virtual absl::StatusOr<std::optional<LoaderStep>> Next() = 0;

  // Batches of a whole epoch over all ranks, and steps of a whole epoch.
  virtual uint32_t batches_per_epoch() const = 0;
  virtual uint32_t steps_per_epoch() const = 0;
  // Steps of first_epoch from first_batch on. 0: nothing of it is left, or less
  // than a whole step with drop_last; then the next epoch's steps come first.
  virtual uint32_t steps_of_first_epoch() const = 0;
  // Seeds of a whole epoch over all ranks.
  virtual int64_t seeds_per_epoch() const = 0;
  // Time Next() has spent waiting so far.
  virtual absl::Duration waited() const = 0;
};

}  // namespace millrace
