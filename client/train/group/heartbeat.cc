// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/heartbeat.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "client/train/group/rank_state.h"
#include "client/train/group/run_handshake.h"
#include "client/train/group/signed_store.h"
#include "common/base/field_error.h"
#include "common/base/log.h"
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

  void Beat();
  void Connect();
  void ExchangeStates();
  bool JoinRun();
  void EndOldGroup();
  void WriteOwnState();
  void ReadOthers();
  void Watch();
  void AwaitPublished() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void CheckSilence() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Lose(const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Accept(int rank, const RankState& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void AcceptFailure(int rank, const absl::Status& why)
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
  // Used only by the beating thread.
  c10::intrusive_ptr<c10d::TCPStore> connection;  // null until connected
  std::unique_ptr<RunHandshake> handshake;        // null until connected
  c10::intrusive_ptr<SignedStore> store;          // null until in a run
  int64_t beats = 0;

  Mutex mutex;
  CondVar changed;  // anything below, except the times
  absl::Duration watched ABSL_GUARDED_BY(mutex);             // time that counts
  std::vector<absl::Duration> heard ABSL_GUARDED_BY(mutex);  // per rank
  std::vector<int64_t> counter ABSL_GUARDED_BY(mutex);       // per rank
  std::vector<bool> ended ABSL_GUARDED_BY(mutex);            // per rank
  absl::Duration answered ABSL_GUARDED_BY(mutex);            // by the store
  absl::Status loss ABSL_GUARDED_BY(mutex);
  bool finishing ABSL_GUARDED_BY(mutex) = false;
  absl::Status failing ABSL_GUARDED_BY(mutex);    // the reason; OK if none
  bool published ABSL_GUARDED_BY(mutex) = false;  // finishing or failing
  bool old_group ABSL_GUARDED_BY(mutex) = false;
  std::string run ABSL_GUARDED_BY(mutex);  // its id; empty until in one
  bool stop ABSL_GUARDED_BY(mutex) = false;
  bool beat_ended ABSL_GUARDED_BY(mutex) = false;
  bool watch_ended ABSL_GUARDED_BY(mutex) = false;
};

namespace {

std::string Key(int rank) { return StrCat("rank/", rank); }

// How long a rank waits for its last message to reach the store.
constexpr absl::Duration kLastMessage = absl::Seconds(3);

// Time between two exchanges while ranks are missing: short, so that a small
// group starts at once, but long enough for rank 0 to serve a large one.
absl::Duration StartInterval(int world) {
  return std::max(absl::Milliseconds(100), world * absl::Milliseconds(10));
}

}  // namespace

void Heartbeat::State::Lose(const std::string& why) {
  if (!loss.ok()) return;
  loss = WithReason(absl::UnavailableError(why), Reason{"rank_lost"});
  changed.NotifyAll();
}

void Heartbeat::State::AcceptFailure(int rank, const absl::Status& why) {
  ended[rank] = true;
  changed.NotifyAll();
  // Only a rank that knows a secret can make this one end with the status of
  // wrong usage.
  if (group.secret.empty() || !IsUsageError(why)) {
    return Lose(StrCat("rank ", rank, " failed: ", why.message()));
  }
  if (!loss.ok()) return;
  // This rank also ends with wrong usage, so that the supervisor of this host
  // does not retry it.
  const std::pair<absl::string_view, absl::string_view> lines =
      absl::StrSplit(why.message(), absl::MaxSplits('\n', 1));
  loss = Reworded(why, StrCat(lines.first, " (reported by rank ", rank, ")",
                              lines.second.empty() ? "" : "\n", lines.second));
}

bool Heartbeat::State::OthersEnded() const {
  for (int r = 0; r < group.world; ++r) {
    if (r != group.rank && counter[r] != 0 && !ended[r]) return false;
  }
  return true;
}

// Returns the other ranks that have not beaten yet.
std::vector<int> Heartbeat::State::Missing() const {
  std::vector<int> missing;
  for (int r = 0; r < group.world; ++r) {
    if (r != group.rank && counter[r] == 0) missing.push_back(r);
  }
  return missing;
}

// May hang, because a stopped rank 0 accepts connections but does not answer.
void Heartbeat::State::Connect() {
  c10d::TCPStoreOptions store_options;
  store_options.port = group.port;
  store_options.timeout = absl::ToChronoMilliseconds(options.silence);
  connection = c10::make_intrusive<c10d::TCPStore>(group.host, store_options);
  handshake = std::make_unique<RunHandshake>(group, connection);
}

// A supervisor may start a rank again before the others have noticed its loss.
// If the new process sent beats, they never would.
void Heartbeat::State::EndOldGroup() {
  MutexLock lock(&mutex);
  Lose(StrCat("the group at ", group.host, ":", group.port,
              " is from an earlier start, with another process as rank ",
              group.rank, "\nend its remaining processes"));
  old_group = true;
  failing = absl::AbortedError("it was started again");
}

// Returns whether this rank is in a run. Rank 0 is in one from the beginning,
// and lets the others join.
bool Heartbeat::State::JoinRun() {
  if (group.rank == 0) {
    std::vector<bool> joined(group.world);
    {
      MutexLock lock(&mutex);
      for (int r = 0; r < group.world; ++r) joined[r] = counter[r] != 0;
    }
    handshake->AnswerRanks(joined);
  } else if (store == nullptr && handshake->AskRankZero() &&
             handshake->restarted()) {
    EndOldGroup();
  }
  MutexLock lock(&mutex);
  if (!handshake->mismatch().ok() && loss.ok()) {
    loss = handshake->mismatch();
    changed.NotifyAll();
  }
  if (store == nullptr && !handshake->run().empty()) {
    run = handshake->run();
    store = c10::make_intrusive<SignedStore>(connection,
                                             MessageSigner(group.secret, run));
  }
  return store != nullptr;
}

void Heartbeat::State::WriteOwnState() {
  RankState own;
  own.beats = ++beats;
  {
    MutexLock lock(&mutex);
    own.finished = finishing;
    own.failure = failing;
  }
  store->Write(Key(group.rank), ToText(own));
}

void Heartbeat::State::ReadOthers() {
  for (int r = 0; r < group.world; ++r) {
    if (r == group.rank) continue;
    const std::optional<RankState> state =
        RankStateFrom(store->Read(Key(r)).message);
    MutexLock lock(&mutex);
    if (state.has_value()) Accept(r, *state);
  }
}

void Heartbeat::State::Accept(int rank, const RankState& state) {
  changed.NotifyAll();
  // An earlier message that a stranger repeats is not a sign of life.
  if (state.beats > counter[rank]) {
    counter[rank] = state.beats;
    heard[rank] = watched;
  }
  if (state.finished) ended[rank] = true;
  if (!state.failure.ok()) AcceptFailure(rank, state.failure);
}

// Waits until the beating thread has written that this rank finishes or fails.
void Heartbeat::State::AwaitPublished() {
  changed.NotifyAll();
  WaitFor(kLastMessage,
          [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex) { return published; });
}

void Heartbeat::State::ExchangeStates() {
  if (connection == nullptr) Connect();
  bool last = false;
  {
    MutexLock lock(&mutex);
    last = finishing || !failing.ok();
  }
  if (JoinRun()) {
    WriteOwnState();
    // TCPStore does not wait for an answer to a write. Once these reads have
    // been answered, the store has this rank's state.
    ReadOthers();
  }
  MutexLock lock(&mutex);
  answered = watched;
  // A rank that has not joined a run has nobody to tell.
  published = published || last;
  changed.NotifyAll();
}

void Heartbeat::State::Beat() {
  while (true) {
    try {
      ExchangeStates();
    } catch (const std::exception&) {
      MutexLock lock(&mutex);
      // Rank 0 may have left because of the mismatch.
      if (store == nullptr && handshake != nullptr && loss.ok()) {
        loss = handshake->suspected_mismatch();
      }
      if (!published) {
        Lose(
            StrCat("rank 0 is gone: its port ", group.host, ":", group.port,
                   connection == nullptr ? " does not answer" : " has closed"));
      }
      break;
    }
    MutexLock lock(&mutex);
    WaitFor(Missing().empty()
                ? options.interval
                : std::min(options.interval, StartInterval(group.world)),
            [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex) {
              return stop || (!published && (finishing || !failing.ok()));
            });
    if (stop) break;
  }
  MutexLock lock(&mutex);
  beat_ended = true;
  changed.NotifyAll();
}

// Looks for ranks that have been silent for too long.
void Heartbeat::State::CheckSilence() {
  if (published) return;  // others may be gone already
  if (watched - answered > options.silence) {
    Lose(StrCat("rank 0 is lost: its port ", group.host, ":", group.port,
                " has not answered for ",
                absl::FormatDuration(options.silence)));
  }
  for (int r = 0; r < group.world; ++r) {
    // A rank that has not joined yet cannot be silent.
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
    // A longer step means that this process, and perhaps the others too, did
    // not run. Counts only a part of it, so that the others can be heard again.
    watched += std::clamp(now - last, absl::ZeroDuration(),
                          std::max(options.interval, options.silence / 4));
    last = now;
    CheckSilence();
  }
  if (!stop && !WaitFor(options.grace, stopped)) {
    if (CurrentLogFormat() == LogFormat::kJson) {
      LogError(LogComponent::kTrain, std::string(loss.message()));
    } else {
      std::fprintf(stderr, "%s: %s\n", program_invocation_short_name,
                   std::string(loss.message()).c_str());
    }
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

// The threads are detached because one may hang in the store forever. The
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
  state.WaitFor(kLastMessage, [&state]() ABSL_SHARED_LOCKS_REQUIRED(
                                  state.mutex) { return state.beat_ended; });
}

absl::Status Heartbeat::status() const {
  MutexLock lock(&state_->mutex);
  return state_->loss;
}

bool Heartbeat::group_is_old() const {
  MutexLock lock(&state_->mutex);
  return state_->old_group;
}

MessageSigner Heartbeat::signer() const {
  MutexLock lock(&state_->mutex);
  return MessageSigner(state_->group.secret, state_->run);
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
