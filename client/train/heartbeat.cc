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
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
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
  void AwaitPublished() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Lose(const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void TakeFailure(int rank, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  bool OthersEnded() const ABSL_SHARED_LOCKS_REQUIRED(mutex);
  std::vector<int> Missing() const ABSL_SHARED_LOCKS_REQUIRED(mutex);
  bool Lost() const ABSL_SHARED_LOCKS_REQUIRED(mutex) { return !loss.ok(); }

  // Waits on `changed` until `condition` is true, for `timeout` at most.
  template <typename Condition>
  bool WaitFor(absl::Duration timeout, Condition condition)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return changed.WaitFor(&mutex, timeout, condition);
  }

  const GroupAddress group;
  const HeartbeatOptions options;
  // Used by the beating thread alone; null until it has connected.
  c10::intrusive_ptr<c10d::TCPStore> store;

  Mutex mutex;
  CondVar changed;  // anything below but the times
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
  changed.NotifyAll();
}

void Heartbeat::State::TakeFailure(int rank, const absl::Status& why) {
  ended[rank] = true;
  changed.NotifyAll();
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
    MutexLock lock(&mutex);
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
    MutexLock lock(&mutex);
    if (count != counter[r]) {
      counter[r] = count;
      heard[r] = watched;
    }
    if (done) ended[r] = true;
    changed.NotifyAll();
  }
}

void Heartbeat::State::ReadFailures() {
  if (store->add(kFailures, 0) == 0) return;
  for (int r = 0; r < group.world; ++r) {
    if (r == group.rank || !store->check({Key("failed", r)})) continue;
    const absl::Status why = FromBytes(store->get(Key("failed", r)));
    MutexLock lock(&mutex);
    TakeFailure(r, why);
  }
}

void Heartbeat::State::Publish() {
  absl::Status why;
  {
    MutexLock lock(&mutex);
    if (published || (!finishing && failing.ok())) return;
    why = failing;
  }
  if (!why.ok()) {
    store->set(Key("failed", group.rank), ToBytes(why));
    store->add(kFailures, 1);
  }
  store->add(Key("end", group.rank), 1);
  MutexLock lock(&mutex);
  published = true;
  changed.NotifyAll();
}

// Of a last word that was just given to the beating thread.
void Heartbeat::State::AwaitPublished() {
  changed.NotifyAll();
  WaitFor(kLastWord,
          [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex) { return published; });
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
      MutexLock lock(&mutex);
      if (!published) {
        Lose(StrCat("rank 0 is gone: its store at ", group.host, ":",
                    group.port,
                    store == nullptr ? " does not answer" : " has closed"));
      }
      break;
    }
    MutexLock lock(&mutex);
    answered = watched;
    WaitFor(options.interval, [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex) {
      return stop || (!published && (finishing || !failing.ok()));
    });
    if (stop) break;
  }
  MutexLock lock(&mutex);
  beat_ended = true;
  changed.NotifyAll();
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
  MutexLock lock(&mutex);
  const auto stopped = [this]()
                           ABSL_SHARED_LOCKS_REQUIRED(mutex) { return stop; };
  SteadyTime last = options.now();
  while (!stop && loss.ok()) {
    WaitFor(options.interval / 2, stopped);
    const SteadyTime now = options.now();
    // A longer step means that this process slept, and perhaps all did: the
    // others get the time to be heard again.
    watched += std::clamp(now - last, absl::ZeroDuration(),
                          std::max(options.interval, options.silence / 4));
    last = now;
    Look();
  }
  if (!stop && !WaitFor(options.grace, stopped)) {
    std::fprintf(stderr, "millrace-train: %s\n",
                 std::string(loss.message()).c_str());
    // The main thread hangs where nothing can wake it.
    _exit(1);
  }
  watch_ended = true;
  changed.NotifyAll();
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
  State& state = *state_;
  MutexLock lock(&state.mutex);
  state.stop = true;
  state.changed.NotifyAll();
  state.changed.Wait(&state.mutex,
                     [&state]() ABSL_SHARED_LOCKS_REQUIRED(state.mutex) {
                       return state.watch_ended;
                     });
  state.WaitFor(kLastWord, [&state]() ABSL_SHARED_LOCKS_REQUIRED(state.mutex) {
    return state.beat_ended;
  });
}

absl::Status Heartbeat::status() const {
  MutexLock lock(&state_->mutex);
  return state_->loss;
}

bool Heartbeat::store_is_old() const {
  MutexLock lock(&state_->mutex);
  return state_->old_store;
}

std::vector<int> Heartbeat::WaitForAll(absl::Duration timeout) const {
  State& state = *state_;
  MutexLock lock(&state.mutex);
  state.WaitFor(timeout, [&state]() ABSL_SHARED_LOCKS_REQUIRED(state.mutex) {
    return state.Lost() || state.Missing().empty();
  });
  return state.Missing();
}

absl::Status Heartbeat::WaitForLoss(absl::Duration timeout) const {
  State& state = *state_;
  MutexLock lock(&state.mutex);
  state.WaitFor(timeout, [&state]() ABSL_SHARED_LOCKS_REQUIRED(state.mutex) {
    return state.Lost();
  });
  return state.loss;
}

void Heartbeat::Finish() {
  MutexLock lock(&state_->mutex);
  state_->finishing = true;
  state_->AwaitPublished();
}

void Heartbeat::Fail(const absl::Status& why) {
  MutexLock lock(&state_->mutex);
  state_->failing = why;
  state_->AwaitPublished();
}

void Heartbeat::WaitForOthers(absl::Duration timeout) const {
  State& state = *state_;
  MutexLock lock(&state.mutex);
  state.WaitFor(timeout, [&state]() ABSL_SHARED_LOCKS_REQUIRED(state.mutex) {
    return state.OthersEnded();
  });
}

}  // namespace millrace
