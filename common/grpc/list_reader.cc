// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/list_reader.h"

#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace millrace {

struct ListReader::State {
  explicit State(AddressList addresses) : list(std::move(addresses)) {}

  bool Settled() ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    return stopped || result.has_value();
  }

  const AddressList list;

  absl::Mutex mutex;
  std::optional<absl::StatusOr<std::vector<std::string>>> result
      ABSL_GUARDED_BY(mutex);
  bool stopped ABSL_GUARDED_BY(mutex) = false;
};

ListReader::ListReader(AddressList list)
    : state_(std::make_shared<State>(std::move(list))) {}

ListReader::~ListReader() { Stop(); }

void ListReader::Stop() {
  absl::MutexLock lock(&state_->mutex);
  state_->stopped = true;
}

absl::StatusOr<std::vector<std::string>> ListReader::Read() {
  if (state_->list.kind() == AddressList::Kind::kStatic) {
    return state_->list.Read();
  }
  std::thread([state = state_] {
    auto result = state->list.Read();
    absl::MutexLock lock(&state->mutex);
    state->result = std::move(result);
  }).detach();
  absl::MutexLock lock(&state_->mutex);
  state_->mutex.Await(absl::Condition(state_.get(), &State::Settled));
  if (state_->stopped) return absl::CancelledError("the fleet was closed");
  return *std::exchange(state_->result, std::nullopt);
}

}  // namespace millrace
