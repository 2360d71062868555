// SPDX-License-Identifier: Apache-2.0
// The options for SOURCE and JOB that `millrace` and `millrace-train` share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/loader.h"
#include "client/open_source.h"
#include "common/graph/manifest.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"

namespace millrace {

// Validator for CLI::Option::check: a LIST that AddressList::Parse accepts.
CLI::Validator ServerList();

// All flags here are added to option groups, so that they look the same in
// every command (see program.h).

// Adds --tls-ca, --tls-cert, --tls-key and --tls-server-name of a client.
void AddTlsFlags(CLI::App& app, TlsOptions& tls);

// Adds --servers LIST to an option group.
CLI::Option* AddServersFlag(CLI::App& group, std::string& servers);

// The flags --store | --servers, --tls-*, --threads, --partition-wait and
// --cache-ratio.
class SourceFlags {
 public:
  // Add --store and --servers, and the options of the connection. Call both;
  // they are separate to control the order in --help.
  void AddTo(CLI::App& app);
  void AddConnectionTo(CLI::App& app);
  // Errors of OpenSource.
  absl::StatusOr<std::shared_ptr<BatchSource>> Open() const;
  int threads() const { return threads_; }

 private:
  std::string store_;
  std::string servers_;
  TlsOptions tls_;
  std::string partition_wait_ = "5m";
  int threads_ = 0;
  double cache_ratio_ = 0;
};

// "15,10,5", also with blanks around the numbers.
// INVALID_ARGUMENT: anything else (names `option`).
absl::StatusOr<Fanouts> ParseFanouts(const std::string& option,
                                     const std::string& text);

// "binary:R", "triplet:K", "shared:K" or "in-batch"; empty: no negatives.
// INVALID_ARGUMENT: anything else (names `option`).
absl::StatusOr<Negatives> ParseNegatives(const std::string& option,
                                         const std::string& text);

// The flags of a JOB. Values are checked by the accessors, whose errors name
// the option.
class JobFlags {
 public:
  void AddTo(CLI::App& app);

  // INVALID_ARGUMENT: --fanouts that are not numbers, an unknown word, or a
  // --global-batch-size that is not divisible by `world`.
  absl::StatusOr<JobSpec> Spec(int world = 1) const;
  // Spec() for commands that only sample. INVALID_ARGUMENT also if --fanouts is
  // missing. (A trainer reports that itself, in terms of layers.)
  absl::StatusOr<JobSpec> SamplingSpec() const;
  // Without --type, sets the type of the seeds if only one node type, or for
  // edge seeds only one relation, has the split. Returns whether it did; the
  // caller should then LogSeedType().
  bool InferSeedType(const Manifest& manifest, JobSpec& spec) const;
  // Features, edge features, labels, and the dtype on the wire.
  absl::StatusOr<Columns> WantedColumns() const;
  // The seeds file, read as seeds of this kind; nullopt if there is none.
  // INVALID_ARGUMENT: not integers of shape [n], or [n, 2] with times; for edge
  // seeds [n, 2], or [n, 3] with times (names the file).
  absl::StatusOr<std::optional<SeedList>> Seeds(SeedKind kind) const;
  bool has_seeds_file() const { return !seeds_file_.empty(); }
  // Whether --exclude-seed-edges was given; a trainer has its own default.
  bool excludes_seed_edges() const { return !exclude_seed_edges_.empty(); }
  int prefetch_batches() const { return prefetch_batches_; }
  int64_t prefetch_bytes() const { return prefetch_bytes_; }

 private:
  void AddSeeds(CLI::App& group);
  void AddSampling(CLI::App& group);
  void AddWalks(CLI::App& group);
  void AddEdgeSeeds(CLI::App& group);
  void AddColumns(CLI::App& group);

  std::string seed_kind_ = "node";
  std::string split_ = "train";
  std::string type_;
  std::string seeds_file_;
  std::vector<std::string> fanouts_;
  int64_t batch_size_ = 1024;
  std::optional<int64_t> global_batch_size_;  // nullopt: not given
  uint64_t seed_ = 1;
  bool shuffle_ = true;
  std::string seed_order_ = "global";
  bool drop_last_ = false;
  bool replace_ = false;
  bool disjoint_ = false;
  std::string direction_ = "in";
  std::string method_ = "uniform";
  bool weighted_ = false;
  std::string temporal_;
  int walks_ = 0;
  int walk_length_ = 0;
  std::optional<double> restart_;  // nullopt: not given
  std::vector<std::string> metapath_;
  std::string train_graph_ = "full";
  std::string negatives_;
  std::string exclude_seed_edges_;  // empty: not given
  std::string labels_ = "seeds";
  bool no_features_ = false;
  bool edge_features_ = false;
  std::string feature_dtype_;
  int prefetch_batches_ = 4;
  int64_t prefetch_bytes_ = int64_t{1} << 30;
};

// Logs the type that InferSeedType() chose.
void LogSeedType(const JobSpec& spec);

}  // namespace millrace
