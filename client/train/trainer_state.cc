// SPDX-License-Identifier: Apache-2.0
// What a Trainer starts from: its checkpoints, given weights and orders.
#include <cstdint>
#include <filesystem>
#include <limits>

#include "client/tensor/torch_status.h"
#include "client/train/checkpoint.h"
#include "client/train/train_check.h"
#include "client/train/trainer.h"
#include "client/train/weights_file.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr uint64_t kMaxCheckpointBytes = uint64_t{1} << 40;

// Rank 0's values on every rank, as bytes: a script's tensors may have any
// dtype and any strides.
absl::Status ShareTensor(Collectives& collectives, const at::Tensor& tensor) {
  const at::Tensor own = tensor.detach();
  if (own.numel() == 0) return absl::OkStatus();
  const at::Tensor bytes = own.reshape({-1}).view(at::kByte);
  MILLRACE_RETURN_IF_ERROR(collectives.Broadcast(bytes, 0));
  own.copy_(bytes.view(own.scalar_type()).view(own.sizes()));
  return absl::OkStatus();
}

// No bytes: there is no file.
absl::StatusOr<std::vector<char>> ReadIfThere(const std::string& path) {
  absl::StatusOr<std::string> content = ReadFile(path, kMaxCheckpointBytes);
  if (absl::IsNotFound(content.status())) return std::vector<char>();
  if (!content.ok()) return content.status();
  if (content->empty()) return ParseCheckpoint({}, path).status();
  return std::vector<char>(content->begin(), content->end());
}

// Zero-based counters of a checkpoint; DATA_LOSS when one is missing.
template <typename Value>
absl::StatusOr<Value> Take(const std::map<std::string, Value>& map,
                           const std::string& name) {
  const auto found = map.find(name);
  if (found != map.end()) return found->second;
  return absl::DataLossError(StrCat("it lacks \"", name, "\""));
}

// A counter that has 32 bits in a run.
absl::StatusOr<uint32_t> TakeShort(const std::map<std::string, int64_t>& map,
                                   const std::string& name) {
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  MILLRACE_ASSIGN_OR_RETURN(const int64_t count, Take(map, name));
  if (count >= 0 && count <= kMost) return static_cast<uint32_t>(count);
  return absl::DataLossError(
      StrCat("its \"", name, "\" is ", count, ", not from 0 to ", kMost));
}

// Adds the path of a checkpoint to an error about what it holds.
absl::Status InFile(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      StrCat("checkpoint ", path, ": ", status.message()));
}

std::optional<double> Optional(const std::map<std::string, double>& map,
                               const std::string& name) {
  const auto found = map.find(name);
  if (found == map.end()) return std::nullopt;
  return found->second;
}

}  // namespace

std::map<std::string, int64_t> Trainer::Counters() const {
  return {{"epoch", at_.epoch},
          {"next_batch", at_.next_batch},
          {"step", at_.step},
          {"labelled", at_.sums.labelled},
          {"correct", at_.sums.correct},
          {"attempt", at_.attempt},
          {"world", collectives_.world()},
          {"optimizer_steps", optimizer_->steps()},
          {"best_epoch", at_.best_epoch},
          {"since_best", at_.since_best}};
}

std::map<std::string, double> Trainer::Values() const {
  std::map<std::string, double> values = {{"loss_sum", at_.sums.loss}};
  const auto put = [&](const char* key, const std::optional<double>& value) {
    if (value.has_value()) values[key] = *value;
  };
  put("best_valid", at_.best_valid);
  put("train_at_best", at_.train_at_best);
  put("test_at_best", at_.test_at_best);
  return values;
}

// Its running statistics averaged over ranks, for who evaluates it.
absl::StatusOr<std::vector<NamedTensor>> Trainer::CopyOfModel() {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<at::Tensor> means,
                            step_->MeanBuffers());
  const std::vector<NamedTensor>& buffers = model_->parameters().buffers();
  std::vector<NamedTensor> copy = model_->parameters().State();
  for (NamedTensor& named : copy) {
    const at::Tensor* value = &named.tensor;
    for (size_t i = 0; i < means.size(); ++i) {
      if (named.tensor.is_same(buffers[i].tensor)) value = &means[i];
    }
    named.tensor = value->detach().clone();
  }
  return copy;
}

absl::Status Trainer::Save(bool best) {
  MILLRACE_RETURN_IF_ERROR(SyncOtherLogs());
  return CatchTorch("copying a checkpoint", [&]() -> absl::Status {
    const auto checkpoint = std::make_shared<Checkpoint>();
    MILLRACE_ASSIGN_OR_RETURN(checkpoint->ranks, step_->RankBuffers());
    MILLRACE_ASSIGN_OR_RETURN(checkpoint->model, CopyOfModel());
    if (!leader()) return absl::OkStatus();
    checkpoint->optimizer = optimizer_->State();
    checkpoint->identity = Identity();
    checkpoint->counters = Counters();
    checkpoint->values = Values();
    writer_->Save(checkpoint, best);
    return absl::OkStatus();
  });
}

absl::Status Trainer::Restore(const Checkpoint& checkpoint) {
  const auto& counters = checkpoint.counters;
  MILLRACE_ASSIGN_OR_RETURN(at_.epoch, TakeShort(counters, "epoch"));
  MILLRACE_ASSIGN_OR_RETURN(at_.next_batch, TakeShort(counters, "next_batch"));
  OptionTexts identity = Identity();
  // Splits that were added since the checkpoint do not matter. (A checkpoint
  // that names no splits has a fingerprint of the dataset that covers them.)
  std::erase_if(identity, [&](const auto& text) {
    return text.first.starts_with(kSplitText) &&
           !checkpoint.identity.contains(text.first);
  });
  MILLRACE_RETURN_IF_ERROR(CheckSameIdentity(checkpoint.identity, identity));
  MILLRACE_RETURN_IF_ERROR(model_->parameters().Load(checkpoint.model));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t steps,
                            Take(counters, "optimizer_steps"));
  MILLRACE_RETURN_IF_ERROR(optimizer_->Load(checkpoint.optimizer, steps));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t world, Take(counters, "world"));
  if (world == collectives_.world()) {
    MILLRACE_RETURN_IF_ERROR(step_->LoadRankBuffers(checkpoint.ranks));
  }
  MILLRACE_ASSIGN_OR_RETURN(at_.step, TakeShort(counters, "step"));
  MILLRACE_ASSIGN_OR_RETURN(at_.sums.labelled, Take(counters, "labelled"));
  MILLRACE_ASSIGN_OR_RETURN(at_.sums.correct, Take(counters, "correct"));
  MILLRACE_ASSIGN_OR_RETURN(at_.attempt, Take(counters, "attempt"));
  MILLRACE_ASSIGN_OR_RETURN(at_.best_epoch, TakeShort(counters, "best_epoch"));
  MILLRACE_ASSIGN_OR_RETURN(at_.since_best, TakeShort(counters, "since_best"));
  MILLRACE_ASSIGN_OR_RETURN(at_.sums.loss, Take(checkpoint.values, "loss_sum"));
  at_.best_valid = Optional(checkpoint.values, "best_valid");
  at_.train_at_best = Optional(checkpoint.values, "train_at_best");
  at_.test_at_best = Optional(checkpoint.values, "test_at_best");
  ++at_.attempt;
  resumed_ = true;
  at_.started_from = absl::StrCat(at_.epoch, ":", at_.next_batch);
  return absl::OkStatus();
}

absl::Status Trainer::ReadOrder(const SeedTable& train) {
  const JobSpec& job = options_.job;
  SeedList seeds;
  if (options_.seeds.has_value()) {
    seeds = *options_.seeds;
  } else if (job.temporal != TemporalStrategy::kNone) {
    return absl::InvalidArgumentError(
        "--order with --temporal needs the times of the seeds\ngive the seeds "
        "with their times by --seeds-file F.npy, [n, 2]");
  } else {
    const int64_t* ids = train.original_id.const_data_ptr<int64_t>();
    seeds.ids.assign(ids, ids + train.size());
  }
  MILLRACE_ASSIGN_OR_RETURN(
      order_, ReadTrainingOrder(options_.order, seeds, options_.epochs));
  options_.job.shuffle = false;
  return CheckSameOnAllRanks(collectives_, StrCat("--order ", options_.order),
                             order_->ChecksumOf(options_.epochs));
}

std::string Trainer::InitAdvice() const {
  if (model_->script() == nullptr) {
    return "give weights of this --model, --layers and --norm, by PyG's names";
  }
  return StrCat("give the state_dict of the module in ", options_.model.script,
                options_.model.decoder == DecoderKind::kDistMult
                    ? ", and the decoder's rel_emb.weight"
                    : "");
}

absl::Status Trainer::ReadInitialWeights() {
  if (leader()) {
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> weights,
                              ReadWeights(options_.init));
    const absl::Status loaded = model_->parameters().Load(weights);
    if (!loaded.ok()) {
      return absl::Status(loaded.code(),
                          StrCat("--init ", options_.init, ": ",
                                 loaded.message(), "\n", InitAdvice()));
    }
  }
  return CatchTorch("sharing weights", [&]() -> absl::Status {
    for (const NamedTensor& named : model_->parameters().State()) {
      MILLRACE_RETURN_IF_ERROR(ShareTensor(collectives_, named.tensor));
    }
    return absl::OkStatus();
  });
}

// best.pt is written before last.pt. Of a run that was killed in between it
// holds a model that this one has not come to yet, and the best one before is
// gone.
absl::StatusOr<bool> Trainer::BestIsAhead() {
  const std::string path = StrCat(options_.checkpoint, "/best.pt");
  bool ahead = false;
  if (leader() && options_.keep_best && options_.epochs > 0) {
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<char> bytes, ReadIfThere(path));
    if (!bytes.empty()) {
      MILLRACE_ASSIGN_OR_RETURN(const Checkpoint best,
                                ParseCheckpoint(bytes, path));
      const absl::StatusOr<int64_t> epoch = Take(best.counters, "epoch");
      MILLRACE_RETURN_IF_ERROR(InFile(path, epoch.status()));
      ahead = *epoch > at_.epoch;
    }
  }
  return collectives_.ShareAnswer(ahead);
}

absl::Status Trainer::Resume() {
  // To evaluate or predict, the best model is meant where it was kept.
  const std::string path = StrCat(
      options_.checkpoint,
      options_.epochs == 0 && options_.keep_best ? "/best.pt" : "/last.pt");
  std::vector<char> bytes;
  absl::Status read;
  if (leader()) {
    absl::StatusOr<std::vector<char>> content = ReadIfThere(path);
    read = content.status();
    if (content.ok()) bytes = *std::move(content);
  }
  MILLRACE_RETURN_IF_ERROR(read);
  MILLRACE_ASSIGN_OR_RETURN(bytes, collectives_.ShareBytes(std::move(bytes)));
  if (bytes.empty()) {
    if (options_.epochs == 0) {
      return absl::NotFoundError(StrCat("no checkpoint ", path));
    }
    // A supervisor starts every attempt alike; the first has nothing yet.
    if (leader()) {
      LogInfo(StrCat("no checkpoint in ", options_.checkpoint,
                     ", starting at the beginning"));
    }
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                            ParseCheckpoint(bytes, path));
  MILLRACE_RETURN_IF_ERROR(InFile(path, Restore(checkpoint)));
  MILLRACE_ASSIGN_OR_RETURN(const bool best_is_ahead, BestIsAhead());
  // Then the next one that is evaluated is the best there is.
  if (best_is_ahead) at_.best_valid.reset();
  if (leader()) {
    LogInfo(StrCat("resumed from epoch ", at_.epoch, ", batch ", at_.next_batch,
                   " of ", path));
  }
  return absl::OkStatus();
}

}  // namespace millrace
