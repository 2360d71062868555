// SPDX-License-Identifier: Apache-2.0
// Batches in plan order, fetched ahead of their use.
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
  // Step k after the start gives rank r the batch
  // first_batch + k * world + r of its epoch.
  int rank = 0;
  int world = 1;

  // Where to start: the epoch, and the batch within it (a checkpoint's
  // next_batch); later epochs start at batch 0.
  uint32_t first_epoch = 0;
  uint32_t first_batch = 0;
  // Number of epochs, the started one included. 0: nothing to do.
  uint32_t epochs = 1;

  // The window: fetched or in flight, not handed out yet. At least one batch
  // is in flight whatever its size, and at most 4 until the first has come and
  // told how large they are.
  int prefetch_batches = 4;
  int64_t prefetch_bytes = int64_t{1} << 30;

  Columns columns = {};

  // Seeds instead of the job's split.
  std::optional<SeedList> seeds = {};
  // The seeds of each epoch from 0 on, as many in each, instead of both.
  std::vector<SeedList> epoch_seeds = {};
};

// One step of the plan. All ranks make the same number of steps.
struct LoaderStep {
  uint32_t epoch = 0;
  uint32_t step = 0;        // since the epoch's (re)start, from 0
  uint32_t next_batch = 0;  // of the epoch, after this step, for all ranks
  bool last_of_epoch = false;
  std::optional<Batch> batch;  // absent: this rank has none in this step
};

// The batches of the next epoch are fetched before this one ends. Batches
// come in plan order whatever order they arrive in.
// Threads: one thread calls Next(). The source is shared with whoever opened
// it; fetches in flight keep what they need alive if the loader goes first.
class Loader {
 public:
  // Errors of ResolveJob and EpochPlan::Create; INVALID_ARGUMENT: an option
  // out of range (names it).
  static absl::StatusOr<std::unique_ptr<Loader>> Create(
      std::shared_ptr<BatchSource> source, const JobSpec& job,
      LoaderOptions options);
  virtual ~Loader() = default;

  // The next step; nullopt when all epochs are done. Blocks until its batch
  // is there. After an error (those of BatchSource::Fetch) the loader stays
  // at this step: every further call returns the error.
  virtual absl::StatusOr<std::optional<LoaderStep>> Next() = 0;

  // Batches of a whole epoch over all ranks, and the steps of a whole one.
  virtual uint32_t batches_per_epoch() const = 0;
  virtual uint32_t steps_per_epoch() const = 0;
  // Steps of first_epoch from first_batch on. 0: what is left of it is not a
  // whole step (drop_last) or nothing; the next epoch's steps come first.
  virtual uint32_t steps_of_first_epoch() const = 0;
  // Seeds of a whole epoch over all ranks.
  virtual int64_t seeds_per_epoch() const = 0;
  // Time Next() has spent waiting so far.
  virtual absl::Duration waited() const = 0;
};

}  // namespace millrace
