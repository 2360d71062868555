// SPDX-License-Identifier: Apache-2.0
#include "client/train/heartbeat.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "common/base/strings.h"

namespace millrace {

struct Heartbeat::State {
  State(const GroupAddress& group_address, const HeartbeatOptions& opts)
      : group(group_address),
        options(opts),
        heard(group.world),
        counter(group.world, 0),
        ended(group.world, false) {}

  void Connect();
  void EndOldGroup();
  void Beat();
  void Watch();
  void ReadOthers();
  void ReadFailures();
  void Publish();
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Lose(const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void TakeFailure(int rank, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  bool OthersEnded() const ABSL_SHARED_LOCKS_REQUIRED(mutex);
  std::vector<int> Missing() const ABSL_SHARED_LOCKS_REQUIRED(mutex);
  bool AllUpOrLost() const ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    return Lost() || Missing().empty();
  }
  bool Lost() const ABSL_SHARED_LOCKS_REQUIRED(mutex) { return !loss.ok(); }

  const GroupAddress group;
  const HeartbeatOptions options;
  // Used by the beating thread alone; null until it has connected.
  c10::intrusive_ptr<c10d::TCPStore> store;

  mutable absl::Mutex mutex;
  absl::Duration watched ABSL_GUARDED_BY(mutex);             // time that counts
  std::vector<absl::Duration> heard ABSL_GUARDED_BY(mutex);  // per rank
  std::vector<int64_t> counter ABSL_GUARDED_BY(mutex);       // per rank
  std::vector<bool> ended ABSL_GUARDED_BY(mutex);            // per rank
  absl::Duration answered ABSL_GUARDED_BY(mutex);            // by the store
  absl::Status loss ABSL_GUARDED_BY(mutex);
  bool finishing ABSL_GUARDED_BY(mutex) = false;
  absl::Status failing ABSL_GUARDED_BY(mutex);    // why; OK: not failing
  bool published ABSL_GUARDED_BY(mutex) = false;  // finishing or failing
  bool old_store ABSL_GUARDED_BY(mutex) = false;
  bool stop ABSL_GUARDED_BY(mutex) = false;
  bool beat_ended ABSL_GUARDED_BY(mutex) = false;
  bool watch_ended ABSL_GUARDED_BY(mutex) = false;
};

namespace {

std::string Key(const char* kind, int rank) {
  return absl::StrCat("millrace/", kind, "/", rank);
}
constexpr char kFailures[] = "millrace/failures";
constexpr char kAdvice[] =
    "\nsee what that rank printed, and start the group again with --resume to "
    "go on from the last checkpoint";

// How long a rank waits for its last word to reach the store.
constexpr absl::Duration kLastWord = absl::Seconds(3);

// A status as a value of the store: its code, a space, its message.
std::vector<uint8_t> ToBytes(const absl::Status& status) {
  const std::string text = StrCat(status.raw_code(), " ", status.message());
  return {text.begin(), text.end()};
}

absl::Status FromBytes(const std::vector<uint8_t>& bytes) {
  const std::string text(bytes.begin(), bytes.end());
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(' ', 1));
  int code = 0;
  if (!absl::SimpleAtoi(parts.first, &code)) return absl::UnknownError(text);
  return absl::Status(static_cast<absl::StatusCode>(code), parts.second);
}

}  // namespace

void Heartbeat::State::Lose(const std::string& why) {
  if (!loss.ok()) return;
  // Unless it says itself what to do.
  loss = absl::UnavailableError(
      StrCat(why, absl::StrContains(why, '\n') ? "" : kAdvice));
}

void Heartbeat::State::TakeFailure(int rank, const absl::Status& why) {
  ended[rank] = true;
  if (!absl::StartsWith(why.message(), "--")) {
    return Lose(StrCat("rank ", rank, " failed: ", why.message()));
  }
  if (!loss.ok()) return;
  // Wrong usage is it here, too: this host's supervisor shall not retry it.
  const std::pair<absl::string_view, absl::string_view> lines =
      absl::StrSplit(why.message(), absl::MaxSplits('\n', 1));
  loss = absl::Status(why.code(),
                      StrCat(lines.first, " (says rank ", rank, ")",
                             lines.second.empty() ? "" : "\n", lines.second));
}

bool Heartbeat::State::OthersEnded() const {
  for (int r = 0; r < group.world; ++r) {
    if (r != group.rank && counter[r] != 0 && !ended[r]) return false;
  }
  return true;
}

// The other ranks that have not beaten once.
std::vector<int> Heartbeat::State::Missing() const {
  std::vector<int> missing;
  for (int r = 0; r < group.world; ++r) {
    if (r != group.rank && counter[r] == 0) missing.push_back(r);
  }
  return missing;
}

// May hang: a rank 0 that is stopped takes connections and answers nothing.
void Heartbeat::State::Connect() {
  c10d::TCPStoreOptions store_options;
  store_options.port = group.port;
  store_options.timeout = absl::ToChronoMilliseconds(options.silence);
  store = c10::make_intrusive<c10d::TCPStore>(group.host, store_options);
}

// A supervisor starts a rank again before the others have missed it, and its
// beats would keep them from that for ever.
void Heartbeat::State::EndOldGroup() {
  {
    absl::MutexLock lock(&mutex);
    Lose(StrCat("the store at ", group.host, ":", group.port,
                " is of an earlier start of this group, with another rank ",
                group.rank, "\nend what is left of it"));
    old_store = true;
    failing = absl::AbortedError("it was started again");
  }
  Publish();
}

void Heartbeat::State::ReadOthers() {
  for (int r = 0; r < group.world; ++r) {
    if (r == group.rank) continue;
    const int64_t count = store->add(Key("beat", r), 0);
    const bool done = store->add(Key("end", r), 0) > 0;
    absl::MutexLock lock(&mutex);
    if (count != counter[r]) {
      counter[r] = count;
      heard[r] = watched;
    }
    if (done) ended[r] = true;
  }
}

void Heartbeat::State::ReadFailures() {
  if (store->add(kFailures, 0) == 0) return;
  for (int r = 0; r < group.world; ++r) {
    if (r == group.rank || !store->check({Key("failed", r)})) continue;
    const absl::Status why = FromBytes(store->get(Key("failed", r)));
    absl::MutexLock lock(&mutex);
    TakeFailure(r, why);
  }
}

void Heartbeat::State::Publish() {
  absl::Status why;
  {
    absl::MutexLock lock(&mutex);
    if (published || (!finishing && failing.ok())) return;
    why = failing;
  }
  if (!why.ok()) {
    store->set(Key("failed", group.rank), ToBytes(why));
    store->add(kFailures, 1);
  }
  store->add(Key("end", group.rank), 1);
  absl::MutexLock lock(&mutex);
  published = true;
}

void Heartbeat::State::Beat() {
  while (true) {
    try {
      const bool first = store == nullptr;
      if (first) Connect();
      if (store->add(Key("beat", group.rank), 1) > 1 && first) {
        EndOldGroup();
        break;
      }
      Publish();
      ReadOthers();
      ReadFailures();
    } catch (const std::exception&) {
      absl::MutexLock lock(&mutex);
      if (!published) {
        Lose(StrCat("rank 0 is gone: its store at ", group.host, ":",
                    group.port,
                    store == nullptr ? " does not answer" : " has closed"));
      }
      break;
    }
    absl::MutexLock lock(&mutex);
    answered = watched;
    const auto wake = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex) {
      return stop || (!published && (finishing || !failing.ok()));
    };
    mutex.AwaitWithTimeout(absl::Condition(&wake), options.interval);
    if (stop) break;
  }
  absl::MutexLock lock(&mutex);
  beat_ended = true;
}

// Whether somebody has been silent for too long.
void Heartbeat::State::Look() {
  if (published) return;  // others may be gone already
  if (watched - answered > options.silence) {
    Lose(StrCat("rank 0 is lost: its store at ", group.host, ":", group.port,
                " has not answered for ",
                absl::FormatDuration(options.silence)));
  }
  for (int r = 0; r < group.world; ++r) {
    // One that has not come up yet cannot be silent.
    if (r == group.rank || ended[r] || counter[r] == 0) continue;
    if (watched - heard[r] <= options.silence) continue;
    Lose(StrCat("rank ", r, " is lost: silent for ",
                absl::FormatDuration(options.silence)));
  }
}

void Heartbeat::State::Watch() {
  absl::MutexLock lock(&mutex);
  absl::Time last = options.now();
  while (!stop && loss.ok()) {
    mutex.AwaitWithTimeout(absl::Condition(&stop), options.interval / 2);
    const absl::Time now = options.now();
    // A longer step means that this process slept, and perhaps all did: the
    // others get the time to be heard again.
    watched += std::clamp(now - last, absl::ZeroDuration(),
                          std::max(options.interval, options.silence / 4));
    last = now;
    Look();
  }
  if (!stop && !mutex.AwaitWithTimeout(absl::Condition(&stop), options.grace)) {
    std::fprintf(stderr, "millrace-train: %s\n",
                 std::string(loss.message()).c_str());
    // The main thread hangs where nothing can wake it.
    _exit(1);
  }
  watch_ended = true;
}

std::unique_ptr<Heartbeat> Heartbeat::Start(const GroupAddress& group,
                                            const HeartbeatOptions& options) {
  return std::unique_ptr<Heartbeat>(
      new Heartbeat(std::make_shared<State>(group, options)));
}

// The threads are detached because one may hang in the store for ever; the
// destructor waits for those that can end.
Heartbeat::Heartbeat(std::shared_ptr<State> state) : state_(std::move(state)) {
  std::thread([state = state_] { state->Beat(); }).detach();
  std::thread([state = state_] { state->Watch(); }).detach();
}

Heartbeat::~Heartbeat() {
  absl::MutexLock lock(&state_->mutex);
  state_->stop = true;
  state_->mutex.Await(absl::Condition(&state_->watch_ended));
  state_->mutex.AwaitWithTimeout(absl::Condition(&state_->beat_ended),
                                 kLastWord);
}

absl::Status Heartbeat::status() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->loss;
}

bool Heartbeat::store_is_old() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->old_store;
}

std::vector<int> Heartbeat::WaitForAll(absl::Duration timeout) const {
  absl::MutexLock lock(&state_->mutex);
  state_->mutex.AwaitWithTimeout(
      absl::Condition(state_.get(), &State::AllUpOrLost), timeout);
  return state_->Missing();
}

absl::Status Heartbeat::WaitForLoss(absl::Duration timeout) const {
  absl::MutexLock lock(&state_->mutex);
  state_->mutex.AwaitWithTimeout(absl::Condition(state_.get(), &State::Lost),
                                 timeout);
  return state_->loss;
}

void Heartbeat::Finish() {
  absl::MutexLock lock(&state_->mutex);
  state_->finishing = true;
  state_->mutex.AwaitWithTimeout(absl::Condition(&state_->published),
                                 kLastWord);
}

void Heartbeat::Fail(const absl::Status& why) {
  absl::MutexLock lock(&state_->mutex);
  state_->failing = why;
  state_->mutex.AwaitWithTimeout(absl::Condition(&state_->published),
                                 kLastWord);
}

void Heartbeat::WaitForOthers(absl::Duration timeout) const {
  absl::MutexLock lock(&state_->mutex);
  state_->mutex.AwaitWithTimeout(
      absl::Condition(state_.get(), &State::OthersEnded), timeout);
}

}  // namespace millrace
