// SPDX-License-Identifier: Apache-2.0
#include "client/train/run_state.h"

#include <limits>
#include <map>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

// Calls `visit` with each field of a checkpoint, by its name in the file.
// Integers are counters, others are values; optional values may be missing.
template <typename State, typename Visitor>
void VisitFields(State& state, Visitor& visit) {
  visit("epoch", state.epoch);
  visit("next_batch", state.next_batch);
  visit("optimizer_steps", state.optimizer_steps);
  visit("world", state.world);
  visit("step", state.step);
  visit("labelled", state.sums.labelled);
  visit("correct", state.sums.correct);
  visit("attempt", state.attempt);
  visit("best_epoch", state.best_epoch);
  visit("since_best", state.since_best);
  visit("loss_sum", state.sums.loss);
  visit("best_valid", state.best_valid);
  visit("train_at_best", state.train_at_best);
  visit("test_at_best", state.test_at_best);
}

class FieldWriter {
 public:
  explicit FieldWriter(Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  void operator()(const char* name, int64_t count) {
    checkpoint_.counters[name] = count;
  }
  void operator()(const char* name, uint32_t count) {
    checkpoint_.counters[name] = count;
  }
  void operator()(const char* name, double value) {
    checkpoint_.values[name] = value;
  }
  void operator()(const char* name, const std::optional<double>& value) {
    if (value.has_value()) checkpoint_.values[name] = *value;
  }

 private:
  Checkpoint& checkpoint_;
};

template <typename Value>
absl::StatusOr<Value> Find(const std::map<std::string, Value>& map,
                           const std::string& name) {
  const auto found = map.find(name);
  if (found != map.end()) return found->second;
  return absl::DataLossError(StrCat("it lacks \"", name, "\""));
}

// Keeps the first error.
class FieldReader {
 public:
  explicit FieldReader(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint) {}

  void operator()(const char* name, int64_t& count) {
    Take(Find(checkpoint_.counters, name), count);
  }
  void operator()(const char* name, double& value) {
    Take(Find(checkpoint_.values, name), value);
  }
  void operator()(const char* name, uint32_t& count) {
    constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
    int64_t wide = 0;
    Take(Find(checkpoint_.counters, name), wide);
    if (wide < 0 || wide > kMost) {
      status_.Update(absl::DataLossError(
          StrCat("its \"", name, "\" is ", wide,
                 ", which is not in the range 0 to ", kMost)));
    }
    count = static_cast<uint32_t>(wide);
  }
  void operator()(const char* name, std::optional<double>& value) {
    const auto found = checkpoint_.values.find(name);
    if (found != checkpoint_.values.end()) value = found->second;
  }

  const absl::Status& status() const { return status_; }

 private:
  template <typename Value>
  void Take(absl::StatusOr<Value> found, Value& value) {
    if (found.ok()) value = *found;
    status_.Update(found.status());
  }

  const Checkpoint& checkpoint_;
  absl::Status status_;
};

}  // namespace

void RunState::SaveTo(Checkpoint& checkpoint) const {
  FieldWriter writer(checkpoint);
  VisitFields(*this, writer);
}

absl::StatusOr<RunState> RunState::From(const Checkpoint& checkpoint) {
  RunState state;
  FieldReader reader(checkpoint);
  VisitFields(state, reader);
  MILLRACE_RETURN_IF_ERROR(reader.status());
  return state;
}

void RunState::BeginAttempt() {
  ++attempt;
  started_from = StrCat(epoch, ":", next_batch);
}

void RunState::EndEpoch() {
  ++epoch;
  next_batch = 0;
  step = 0;
}

bool RunState::NoteEvaluation(uint32_t evaluated, const SplitMetrics& metrics,
                              const Task& task) {
  const std::optional<double>& valid = metrics.valid;
  if (valid.has_value() && best_valid.has_value() &&
      !task.Better(*valid, *best_valid)) {
    ++since_best;
    return false;
  }
  since_best = 0;
  best_epoch = evaluated;
  best_valid = valid;
  train_at_best = metrics.train;
  test_at_best = metrics.test;
  return true;
}

absl::StatusOr<int64_t> ReadEpoch(const Checkpoint& checkpoint) {
  return Find(checkpoint.counters, "epoch");
}

}  // namespace millrace
