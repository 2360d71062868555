// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/fleet.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/grpc/status.h"
#include "common/grpc/tls/tls.h"
#include "common/wire/error_info.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

using State = FleetMemberInfo::State;

// Minimum interval between refreshes (reading the list and asking members
// again) that are triggered by callers that found no owner.
constexpr absl::Duration kRefreshInterval = absl::Milliseconds(100);

// How often to make gRPC reconnect to a member that does not answer on all of
// its connections. This equals gRPC's own maximum backoff (channel_args.cc),
// but gRPC's timers are late when the clock is set back.
constexpr absl::Duration kConnectInterval = absl::Seconds(1);

constexpr absl::Duration kInterruptInterval = absl::Milliseconds(200);

// How long to wait for other members in the list once one has answered.
constexpr absl::Duration kGreetingTime = absl::Milliseconds(500);

// The member with the fewest outstanding bytes that is not in `avoid`; a busy
// one only if all are busy. `turn` decides among equals. Null if there is none.
std::shared_ptr<FleetMember> LeastLoaded(
    const FleetDirectory::Entries& owners,
    const std::vector<const FleetMember*>& avoid, size_t turn) {
  const SteadyTime now = SteadyNow();
  std::shared_ptr<FleetMember> best;
  std::pair<bool, int64_t> least;  // busy, bytes
  for (size_t i = 0; i < owners.size(); ++i) {
    const FleetEntry& entry = *owners[(i + turn) % owners.size()];
    const auto& member = entry.member;
    if (std::find(avoid.begin(), avoid.end(), member.get()) != avoid.end()) {
      continue;
    }
    const std::pair load(entry.busy.IsBusy(now),
                         member->outstanding_bytes.load());
    if (!best || load < least) {
      best = member;
      least = load;
    }
  }
  return best;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Fleet>> Fleet::Create(
    FleetOptions options, std::unique_ptr<FleetTransport> transport) {
  MILLRACE_ASSIGN_OR_RETURN(AddressList list, AddressList::Parse(options.list));
  if (transport == nullptr) transport = MakeGrpcTransport(options);
  return std::unique_ptr<Fleet>(
      new Fleet(std::move(options), std::move(list), std::move(transport)));
}

Fleet::Fleet(FleetOptions options, AddressList list,
             std::unique_ptr<FleetTransport> transport)
    : options_(std::move(options)),
      list_kind_(list.kind()),
      transport_(std::move(transport)),
      reader_(std::move(list)),
      directory_(options_, *transport_, keeper_) {
  thread_ = std::thread([this] { Run(); });
}

Fleet::~Fleet() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    WakeThread();
  }
  CancelAllCalls();
  reader_.Stop();
  thread_.join();
  CancelAllCalls();  // the thread may have started some meanwhile
  MutexLock lock(&mutex_);
  changed_.Wait(&mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return calls_.empty();
  });
}

void Fleet::CancelAllCalls() {
  DescribeCalls unwanted;
  {
    MutexLock lock(&mutex_);
    for (const auto& [pending, owner] : calls_) {
      unwanted.push_back(pending->call);
    }
  }
  for (const auto& call : unwanted) call->Cancel();
}

void Fleet::Run() {
  while (true) {
    keeper_.EndUnused();
    RefreshList();
    const SteadyTime next = StartDueCalls();
    MutexLock lock(&mutex_);
    thread_wakes_.WaitUntil(
        &mutex_, next,
        [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return woken_; });
    woken_ = false;
    if (stopping_) return;
  }
}

void Fleet::WakeThread() {
  woken_ = true;
  thread_wakes_.NotifyOne();
}

void Fleet::NotifyChange() {
  ++changes_;
  changed_.NotifyAll();
}

void Fleet::RefreshList() {
  {
    MutexLock lock(&mutex_);
    const SteadyTime now = SteadyNow();
    if (reading_ || next_list_ > now) return;
    reading_ = true;
    list_begun_ = now;
    next_list_ =
        list_kind_ == AddressList::Kind::kStatic ? SteadyTime::InfiniteFuture()
        : list_kind_ == AddressList::Kind::kFile ? now + options_.file_interval
                                                 : now + options_.dns_interval;
  }
  reader_.Start(
      [this](const ListReader::Result& addresses) { TakeList(addresses); });
}

void Fleet::TakeList(const ListReader::Result& addresses) {
  if (NoteList(addresses)) {
    LogWarning(LogComponent::kFleet,
               StrCat("the list of servers cannot be read: keeping those known "
                      "so far",
                      AdviceOf(addresses.status())),
               {{"error", FirstLine(addresses.status())}});
  }
}

bool Fleet::NoteList(const ListReader::Result& addresses) {
  MutexLock lock(&mutex_);
  reading_ = false;
  list_read_ = list_begun_;
  changed_.NotifyAll();
  WakeThread();
  if (stopping_) return false;
  if (addresses.ok()) {
    if (directory_.Apply(*addresses)) NotifyChange();
    return false;
  }
  // No warning while the file is still empty: `millrace up` fills it once its
  // servers are up.
  const bool unfilled =
      absl::IsNotFound(addresses.status()) && directory_.entries().empty();
  return directory_.NoteListError(addresses.status()) && !unfilled;
}

SteadyTime Fleet::StartDueCalls() {
  DescribeCalls overdue;
  std::vector<std::shared_ptr<FleetEntry>> due;
  SteadyTime next;
  {
    MutexLock lock(&mutex_);
    if (stopping_) return SteadyTime::InfinitePast();
    const SteadyTime now = SteadyNow();
    // A read in progress will wake this thread when it is done.
    next = reading_ ? SteadyTime::InfiniteFuture() : next_list_;
    overdue = TakeOverdueCalls(now);
    next = std::min(next, NextDeadline());
    for (const auto& entry : directory_.EntriesToAsk()) {
      if (entry->describe_in_flight) continue;
      if (entry->next_ask <= now) {
        entry->describe_in_flight = true;
        due.push_back(entry);
      } else {
        next = std::min(next, entry->next_ask);
      }
    }
  }
  for (const auto& call : overdue) call->Cancel();
  for (auto& entry : due) next = std::min(next, StartCall(std::move(entry)));
  return next;
}

Fleet::DescribeCalls Fleet::TakeOverdueCalls(SteadyTime now) {
  DescribeCalls overdue;
  for (const auto& [pending, owner] : calls_) {
    if (pending->overdue || pending->deadline > now) continue;
    pending->overdue = true;
    overdue.push_back(pending->call);
  }
  return overdue;
}

SteadyTime Fleet::NextDeadline() const {
  SteadyTime next = SteadyTime::InfiniteFuture();
  for (const auto& [pending, owner] : calls_) {
    if (!pending->overdue) next = std::min(next, pending->deadline);
  }
  return next;
}

SteadyTime Fleet::StartCall(std::shared_ptr<FleetEntry> entry) {
  auto owner = std::make_unique<PendingDescribe>();
  PendingDescribe* pending = owner.get();
  pending->call = transport_->NewDescribeCall(entry->member);
  pending->entry = std::move(entry);
  DescribeCall::Options options;
  {
    MutexLock lock(&mutex_);
    options.reconnect = ShouldConnect(*pending->entry);
    pending->is_suspect = pending->entry->suspected;
    // If the store is known, so are its splits, or they are not needed.
    options.look_for_splits =
        options_.fingerprint.empty() && !directory_.settled();
    options.deadline =
        SteadyNow() + (pending->is_suspect ? options_.suspect_timeout
                                           : options_.describe_timeout);
    pending->deadline = options.deadline;
    calls_.emplace(pending, std::move(owner));
  }
  pending->call->Start(options,
                       [this, pending](const absl::Status& status,
                                       const v1::DescribeReply& reply) {
                         FinishCall(pending, status, reply);
                       });
  return options.deadline;
}

bool Fleet::ShouldConnect(FleetEntry& entry) {
  const SteadyTime now = SteadyNow();
  const State state = entry.info.state;
  if (state == State::kReady || state == State::kDraining) return false;
  if (now < entry.next_connect) return false;
  entry.next_connect = now + kConnectInterval;
  return true;
}

void Fleet::FinishCall(PendingDescribe* pending, absl::Status status,
                       const v1::DescribeReply& reply) {
  std::optional<StateChange> change;
  {
    MutexLock lock(&mutex_);
    change = NoteAnswer(*pending, std::move(status), reply);
    calls_.erase(pending);
    NotifyChange();
    WakeThread();
  }
  // From here on, this fleet may be gone.
  if (change.has_value()) LogChange(*change);
}

// At the start all members change from unknown, which is of little interest
// unless one of them is refused.
void Fleet::LogChange(const StateChange& change) {
  const FleetMemberInfo& member = change.member;
  const bool refused = member.state == State::kRefused;
  if (change.first && !refused && !IsLogged(LogLevel::kDebug)) return;
  LogFields fields = {{"server", member.address}};
  if (!member.partitions.empty()) {
    fields.push_back({"partitions", absl::StrJoin(member.partitions, ",")});
  }
  if (!member.error.ok()) fields.push_back({"error", FirstLine(member.error)});
  const std::string message =
      StrCat("server ", StateName(member.state), AdviceOf(member.error));
  if (refused) {
    LogWarning(LogComponent::kFleet, message, fields);
  } else if (change.first) {
    LogDebug(LogComponent::kFleet, message, fields);
  } else {
    LogInfo(LogComponent::kFleet, message, fields);
  }
}

std::optional<Fleet::StateChange> Fleet::NoteAnswer(
    const PendingDescribe& pending, absl::Status status,
    const v1::DescribeReply& reply) {
  FleetEntry& entry = *pending.entry;
  FleetMemberInfo& info = entry.info;
  const bool again = std::exchange(entry.ask_again, false);
  entry.describe_in_flight = false;
  // If the member has been suspected since the call began, it is asked again,
  // with the shorter timeout.
  const bool cut_short = entry.suspected && !pending.is_suspect && !status.ok();
  if (!cut_short) entry.suspected = false;
  if (cut_short && !again) {
    // next_ask is due already.
  } else if (again) {
    info.state = State::kUnknown;
    entry.next_ask = SteadyTime::InfinitePast();
  } else {
    if (absl::IsDeadlineExceeded(status) ||
        (pending.overdue && absl::IsCancelled(status))) {
      status = absl::DeadlineExceededError(
          StrCat("no answer within ",
                 absl::FormatDuration(pending.is_suspect
                                          ? options_.suspect_timeout
                                          : options_.describe_timeout)));
    }
    RecordAnswer(reply, status, entry);
  }
  // A member that is only asked again is unknown for a moment.
  if (info.state == entry.logged || info.state == State::kUnknown ||
      stopping_) {
    return std::nullopt;
  }
  const State before = std::exchange(entry.logged, info.state);
  return StateChange{info, before == State::kUnknown};
}

void Fleet::RecordAnswer(const v1::DescribeReply& reply,
                         const absl::Status& status, FleetEntry& entry) {
  const SteadyTime now = SteadyNow();
  FleetMemberInfo& info = entry.info;
  // A server too busy to describe itself is alive.
  const bool busy = absl::IsResourceExhausted(status);
  if (status.ok() || busy) entry.answered = now;
  info.error = ExplainConnection(status, info.address, options_.tls.get());
  if (status.ok()) {
    info.error = directory_.Learn(reply, info);
    if (!info.error.ok()) info.state = State::kRefused;
    entry.next_ask = now + options_.ready_interval;
    return;
  }
  if (!busy) {
    info.state = State::kUnreachable;
  } else if (info.state == State::kUnreachable) {
    info.state = State::kUnknown;
  }
  entry.next_ask = now + options_.retry_interval;
}

void Fleet::RequestRefresh() {
  const SteadyTime now = SteadyNow();
  if (now - last_refresh_ < kRefreshInterval) return;
  last_refresh_ = now;
  if (list_kind_ != AddressList::Kind::kStatic) next_list_ = now;
  for (const auto& entry : directory_.entries()) {
    if (entry->info.state != State::kReady) entry->next_ask = now;
  }
  WakeThread();
}

std::vector<std::shared_ptr<FleetMember>> Fleet::Owners(int partition) {
  MutexLock lock(&mutex_);
  auto owners = directory_.Owners(partition);
  if (owners.empty()) RequestRefresh();
  return owners;
}

bool Fleet::WaitForChange(uint64_t seen, SteadyTime deadline) const {
  const auto is_new = [this, seen]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return changes_ != seen;
  };
  return changed_.WaitUntil(&mutex_, deadline, is_new);
}

absl::StatusOr<std::shared_ptr<FleetMember>> Fleet::Pick(
    int partition, SteadyTime deadline,
    const std::vector<const FleetMember*>& avoid) {
  MutexLock lock(&mutex_);
  while (true) {
    ++turn_;
    std::shared_ptr<FleetMember> best;
    bool any = false;
    for (const State state : {State::kReady, State::kDraining}) {
      const auto owners = directory_.OwnersIn(state, partition);
      any |= !owners.empty();
      if (!best) best = LeastLoaded(owners, avoid, turn_);
    }
    if (best) return best;
    if (any) return directory_.NoOwner(partition);  // all are in `avoid`
    RequestRefresh();
    // Wakes often enough to request the next refresh as soon as it is allowed.
    const SteadyTime soon = SteadyNow() + kRefreshInterval;
    WaitForChange(changes_, std::min(deadline, soon));
    if (SteadyNow() >= deadline && directory_.Owners(partition).empty()) {
      return directory_.NoOwner(partition);
    }
  }
}

absl::StatusOr<const Manifest*> Fleet::WaitForManifest(SteadyTime deadline) {
  MutexLock lock(&mutex_);
  while (!directory_.manifest().has_value()) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    RequestRefresh();
    const SteadyTime soon = SteadyNow() + kRefreshInterval;
    WaitForChange(changes_, std::min(deadline, soon));
    MILLRACE_RETURN_IF_ERROR(directory_.AllShutOut());
    if (directory_.manifest().has_value() || SteadyNow() < deadline) continue;
    return absl::UnavailableError(
        StrCat("no server of the fleet answers (", directory_.Tried(),
               ")\nstart the servers, or correct the list"));
  }
  // Give the other members a moment, so that the caller's next request finds
  // the owners of all partitions.
  const SteadyTime moment = std::min(deadline, SteadyNow() + kGreetingTime);
  while (directory_.AnyUnknown() && SteadyNow() < moment) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    WaitForChange(changes_, moment);
  }
  MILLRACE_RETURN_IF_ERROR(directory_.CheckOneStore());
  directory_.Settle();
  return &*directory_.manifest();
}

bool Fleet::OnlyThese(int partition,
                      const std::vector<const FleetMember*>& members) const {
  MutexLock lock(&mutex_);
  return directory_.OnlyThese(partition, members);
}

bool Fleet::AwaitList(SteadyTime since, SteadyTime deadline) {
  if (list_kind_ == AddressList::Kind::kStatic) return true;
  MutexLock lock(&mutex_);
  if (list_begun_ < since) {
    const SteadyTime soonest = list_begun_ + kRefreshInterval;
    next_list_ = std::min(next_list_, std::max(SteadyNow(), soonest));
    WakeThread();
  }
  const auto is_read = [this, since]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return list_read_ >= since;
  };
  return changed_.WaitUntil(&mutex_, deadline, is_read);
}

void Fleet::ReportFailure(const FleetMember& member,
                          const absl::Status& status) {
  if (!IsRetryable(status) && !absl::IsDeadlineExceeded(status) &&
      !IsServedElsewhere(status)) {
    return;
  }
  MutexLock lock(&mutex_);
  FleetEntry* entry = directory_.Find(member);
  if (entry == nullptr) return;
  if (absl::IsResourceExhausted(status)) {
    // This says nothing about the connection.
    entry->busy.Note(ErrorInfoOf(status).retry_after, SteadyNow());
    return;
  }
  // For a member that is known to be lost this is not new, and others are
  // waiting for its next answer.
  if (entry->info.state == State::kUnreachable) return;
  entry->info.error = status;
  entry->info.state = State::kUnknown;
  entry->next_ask = SteadyTime::InfinitePast();
  entry->ask_again = entry->describe_in_flight;
  NotifyChange();
  WakeThread();
}

void Fleet::Suspect(const FleetMember& member) {
  DescribeCalls in_flight;
  {
    MutexLock lock(&mutex_);
    FleetEntry* entry = directory_.Find(member);
    if (entry == nullptr || entry->suspected) return;
    if (SteadyNow() - entry->answered < options_.recent_answer) return;
    entry->suspected = true;
    entry->next_ask = SteadyTime::InfinitePast();
    WakeThread();
    for (const auto& [pending, owner] : calls_) {
      if (pending->entry.get() == entry) in_flight.push_back(pending->call);
    }
  }
  // They have the longer timeout. The member is asked again once they end.
  for (const auto& call : in_flight) call->Cancel();
}

bool Fleet::IsLost(const FleetMember& member) const {
  MutexLock lock(&mutex_);
  const FleetEntry* entry = directory_.Find(member);
  return entry == nullptr || entry->info.state == State::kUnreachable ||
         entry->info.state == State::kRefused;
}

std::vector<FleetMemberInfo> Fleet::Members() const {
  MutexLock lock(&mutex_);
  return MembersLocked();
}

absl::StatusOr<std::vector<FleetMemberInfo>> Fleet::AwaitMembers(
    const std::function<bool(const std::vector<FleetMemberInfo>&)>& condition,
    SteadyTime deadline) const {
  while (true) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    std::vector<FleetMemberInfo> members;
    uint64_t seen = 0;
    {
      MutexLock lock(&mutex_);
      members = MembersLocked();
      seen = changes_;
    }
    const SteadyTime now = SteadyNow();
    if (condition(members) || now >= deadline) return members;
    MutexLock lock(&mutex_);
    WaitForChange(seen, std::min(deadline, now + kInterruptInterval));
  }
}

std::vector<FleetMemberInfo> Fleet::MembersLocked() const {
  std::vector<FleetMemberInfo> members;
  for (const auto& entry : directory_.entries()) members.push_back(entry->info);
  return members;
}

}  // namespace millrace
