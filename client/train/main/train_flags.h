// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/flags/job_flags.h"
#include "client/train/device/reducer.h"
#include "client/train/run/train_options.h"
#include "client/train/run/train_words.h"
#include "common/cli/metrics_flags.h"
#include "common/net/host_port.h"

namespace millrace {

// The options of millrace-train besides SOURCE.
class TrainFlags {
 public:
  // `devices`: the values that --device may have, "cpu" and kinds of GPUs.
  explicit TrainFlags(std::vector<std::string> devices = {"cpu", "cuda",
                                                          "auto"})
      : devices_(std::move(devices)) {}
  void AddTo(CLI::App& app);

  // Where to train. --workers gpus is for GPUs.
  const std::string& device() const;
  // What adds up gradients; nullopt for what suits the device.
  std::optional<Backend> backend() const {
    return ValueOf(kBackendWords, backend_);
  }

  bool has_workers() const { return !workers_.empty(); }
  // Trainer processes to start; 0 if --workers gives no number.
  int workers() const;
  // Whether to start one for each GPU.
  bool worker_for_each_gpu() const { return workers_ == kGpus; }
  // File for ReadGroupSecret(); empty if there is none.
  const std::string& rendezvous_secret() const { return rendezvous_secret_; }

  bool has_metrics() const { return metrics_.given(); }
  // Where a rank that is the `place`th of its host, from 0, serves its metrics
  // and status page: --metrics, with the port that many higher unless it is 0.
  // INVALID_ARGUMENT: other hosts could read them and --metrics-plaintext was
  // not given, or there is no such port.
  absl::StatusOr<HostPort> MetricsAddress(int place) const;

  // Prefix of the file in --model.
  static constexpr std::string_view kScript = "script:";

  // Returns the options of a run with `world` ranks. INVALID_ARGUMENT: a value
  // out of range. UNIMPLEMENTED: one that is not supported yet. Both name the
  // option.
  absl::StatusOr<TrainOptions> Options(int world) const;

  // Calls JobFlags::InferSeedType() for the job of Options().
  bool InferSeedType(const Manifest& manifest, JobSpec& job) const {
    return job_.InferSeedType(manifest, job);
  }

 private:
  static constexpr std::string_view kGpus = "gpus";

  void AddTask(CLI::App& group);
  void AddModel(CLI::App& group);
  void AddTraining(CLI::App& group);
  void AddProcesses(CLI::App& group);
  void AddEvaluation(CLI::App& group);
  void AddFiles(CLI::App& group);
  absl::Status CheckDevice() const;
  bool scripted() const;  // --model script:FILE
  absl::Status FillModel(TrainOptions& options) const;
  absl::Status FillScript(ModelConfig& model) const;
  absl::Status FillEmbedding(TrainOptions& options) const;
  absl::Status FillLayers(TrainOptions& options) const;
  // INVALID_ARGUMENT: --seeds gave a different kind from the one that --task
  // learns.
  absl::Status TakeSeedKind(SeedKind kind, const char* word,
                            JobSpec& job) const;
  // INVALID_ARGUMENT: options of another task than --task were given.
  absl::Status CheckTaskOptions() const;
  absl::Status FillTask(TrainOptions& options) const;
  absl::Status FillLinks(TrainOptions& options) const;
  absl::Status FillEvalNegatives(EvaluationOptions& evaluation) const;
  absl::Status FillEvaluation(TrainOptions& options) const;

  const std::vector<std::string> devices_;
  const CLI::App* app_ = nullptr;  // set by AddTo()
  JobFlags job_;
  std::string workers_;  // a number or kGpus; empty if not given
  std::string rendezvous_secret_;
  MetricsFlags metrics_;

  std::string model_ = "sage";
  int64_t hidden_ = 256;
  int layers_ = 0;  // 0 for as many as fanouts
  int heads_ = 1;
  std::string aggregation_ = WordFor(kAggregationWords, Aggregation::kMean);
  int bases_ = 0;
  double dropout_ = 0;
  std::string norm_ = WordFor(kNormWords, NormKind::kNone);
  std::string gcn_norm_ = WordFor(kGcnNormWords, GcnNorm::kFull);
  std::string task_ = "single";
  int64_t classes_ = 0;
  std::string decoder_ = WordFor(kDecoderWords, DecoderKind::kDot);
  std::string loss_;  // empty for the one that suits --negatives
  int gin_mlp_ = 2;
  std::string readout_ = WordFor(kAggregationWords, Aggregation::kSum);
  std::string graph_head_ = WordFor(kGraphHeadWords, true);
  uint64_t model_seed_ = 1;
  std::string init_;

  std::string order_;
  uint32_t epochs_ = 10;
  double lr_ = 0.003;
  double weight_decay_ = 0;
  std::string optimizer_ = WordFor(kOptimizerWords, OptimizerKind::kAdam);
  std::string lr_schedule_ = "constant";
  uint32_t patience_ = 0;
  std::string precision_ = WordFor(kPrecisionWords, Precision::kFloat32);
  std::string device_ = "cpu";
  std::string backend_;  // empty for the device's own

  std::string valid_split_;
  std::string test_split_;
  std::string metric_;  // empty for the task's own
  std::string eval_negatives_;
  uint32_t eval_every_ = 1;
  std::string inference_;  // empty for the one that suits model and task
  std::string eval_fanouts_;
  int64_t eval_batch_size_ = 4096;
  std::string eval_ranks_ = WordFor(kEvalRanksWords, true);

  std::string checkpoint_;
  uint32_t checkpoint_every_ = 0;
  bool keep_best_ = false;
  bool resume_ = false;
  std::string predict_;
  std::string output_ = WordFor(kOutputWords, false);
  std::string metrics_json_;
  uint32_t log_every_ = 0;
  std::string consumed_log_;
};

}  // namespace millrace
