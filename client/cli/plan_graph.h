// SPDX-License-Identifier: Apache-2.0
// The graph that `millrace plan` plans for: its figures, from options, from the
// JSON of `millrace inspect`, or from a dataset or store.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/store_size.h"
#include "common/graph/manifest.h"
#include "common/graph/schema.h"

namespace millrace {

struct PlanGraph {
  // Only its schema, method of partitioning, files and splits are set; there
  // are files only if the graph is a store that exists.
  Manifest manifest;
  int partitions = 1;  // that it has been divided into
  int64_t seeds = 0;   // in all splits together
  std::string store;   // where batches can be made; empty if nowhere

  double nodes() const;
  double edges() const;
  // Whether it has been divided already, so that its files have sizes.
  bool is_partitioned() const { return !manifest.is_dataset(); }
  // Of a store of so many partitions: the sizes of its files if it exists,
  // otherwise an estimate.
  StoreSize SizeOf(int partitions) const;
};

class PlanGraphFlags {
 public:
  void AddTo(CLI::App& app);
  // A usage error: no figures, or figures from several places. Also the errors
  // of Store::Open() and of reading the file.
  absl::StatusOr<PlanGraph> Read() const;

 private:
  absl::StatusOr<PlanGraph> FromNumbers() const;
  absl::StatusOr<PlanGraph> FromReport() const;
  absl::StatusOr<PlanGraph> FromStore() const;
  // What `millrace partition` would do with the dataset.
  absl::Status SetStored(Schema& schema) const;

  std::string store_;
  std::string report_;
  int64_t nodes_ = 0;
  int64_t edges_ = 0;
  int64_t features_ = 0;
  int64_t edge_values_ = 0;
  int64_t seeds_ = -1;
  bool weights_ = false;
  bool times_ = false;
  bool types_ = false;
  std::string dtype_;
  std::string directions_ = "in";
};

}  // namespace millrace
