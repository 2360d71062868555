// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/list_reader.h"

#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace millrace {

struct ListReader::State {
  explicit State(AddressList addresses) : list(std::move(addresses)) {}

  void ReadFor(const std::function<void(const Result&)>& done) {
    const Result result = list.Read();
    absl::MutexLock lock(&mutex);
    if (!stopped) done(result);
  }

  const AddressList list;

  absl::Mutex mutex;  // held while `done` runs
  bool stopped ABSL_GUARDED_BY(mutex) = false;
};

ListReader::ListReader(AddressList list)
    : state_(std::make_shared<State>(std::move(list))) {}

ListReader::~ListReader() { Stop(); }

void ListReader::Stop() {
  absl::MutexLock lock(&state_->mutex);
  state_->stopped = true;
}

void ListReader::Start(std::function<void(const Result&)> done) {
  if (state_->list.kind() == AddressList::Kind::kStatic) {
    state_->ReadFor(done);
    return;
  }
  std::thread([state = state_, done = std::move(done)] {
    state->ReadFor(done);
  }).detach();
}

}  // namespace millrace
