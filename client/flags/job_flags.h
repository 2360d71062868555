// SPDX-License-Identifier: Apache-2.0
// The options for SOURCE and JOB that `millrace` and `millrace-train` share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/loader.h"
#include "client/open_source.h"
#include "common/cli/memory_flags.h"
#include "common/graph/manifest.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"
#include "common/sample/job_options.h"

namespace millrace {

// Validator for CLI::Option::check: a LIST that AddressList::Parse accepts.
CLI::Validator ServerList();

// All flags here are added to option groups, so that they look the same in
// every command (see program.h).

// Adds --tls-ca, --tls-cert, --tls-key and --tls-server-name of a client.
void AddTlsFlags(CLI::App& app, TlsOptions& tls);

// Adds --servers LIST to an option group.
CLI::Option* AddServersFlag(CLI::App& group, std::string& servers);

// The GPU of a program that computes on one.
struct OwnGpu {
  int device = 0;  // of those that the process sees
  // Keeps the feature rows of --cache-ratio there; null if nothing does.
  std::shared_ptr<DeviceCache> cache = nullptr;
};

// The flags --store | --servers, --tls-*, --threads, --partition-wait,
// --trace-slow, --cache-ratio, and those of MemoryFlags.
class SourceFlags {
 public:
  // Add --store and --servers, and the options of the connection. Call both;
  // they are separate to control the order in --help, which gives
  // `default_gpus` as the default of --gpus.
  void AddTo(CLI::App& app);
  void AddConnectionTo(CLI::App& app, const std::string& default_gpus = "0");
  // What is kept on GPUs is kept on `gpu` unless --gpus says otherwise, and it
  // reads pinned rows for its batches. INVALID_ARGUMENT: a --partition-wait
  // or a --trace-slow that is no duration.
  absl::StatusOr<SourceOptions> Options(
      const std::optional<OwnGpu>& gpu = std::nullopt) const;
  // Opens the source of these options. Fails like OpenSource, too.
  absl::StatusOr<std::shared_ptr<BatchSource>> Open(
      const std::optional<OwnGpu>& gpu = std::nullopt) const;
  int threads() const { return threads_; }
  // "store PATH" or "servers LIST", as given.
  std::string Describe() const;
  const std::string& store() const { return store_; }
  const TlsOptions& tls() const { return tls_; }
  const MemoryFlags& memory() const { return memory_; }

  // Puts servers of --store in its place. The options that say where to keep it
  // are theirs from then on.
  void ReadFromServers(const std::string& servers);

 private:
  std::string store_;
  std::string servers_;
  TlsOptions tls_;
  std::string partition_wait_ = "5m";
  std::string trace_slow_ = "0";
  int threads_ = 0;
  double cache_ratio_ = 0;
  MemoryFlags memory_;
};

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
  absl::StatusOr<std::optional<ExplicitSeeds>> Seeds(SeedKind kind) const;
  bool has_seeds_file() const { return !seeds_file_.empty(); }
  // Whether --exclude-seed-edges was given; a trainer has its own default.
  bool excludes_seed_edges() const {
    return !texts_.at("exclude").back().empty();
  }
  int prefetch_batches() const { return prefetch_batches_; }
  int64_t prefetch_bytes() const { return prefetch_bytes_; }

 private:
  CLI::Option* AddOption(CLI::App& group, const JobOption& row);
  void AddGroup(CLI::App& group, JobOption::Group rows);
  void AddSeedsFile(CLI::App& group);
  void AddGlobalBatchSize(CLI::App& group, CLI::Option* batch_size);
  absl::Status SetNumbers(JobSpec& spec) const;
  void AddColumns(CLI::App& group);

  JobSpec spec_;  // as far as options set its fields directly
  // By field name: the values given for the other fields, and for numbers whose
  // default --help does not show.
  std::map<std::string_view, std::vector<std::string>> texts_;
  std::map<std::string_view, std::optional<double>> numbers_;
  std::string seeds_file_;
  std::optional<int64_t> global_batch_size_;  // nullopt if not given
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
