// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/fleet.h"

#include <algorithm>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/base/interrupt.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/grpc/fleet/address_list.h"
#include "common/grpc/fleet/fleet_directory.h"
#include "common/grpc/fleet/list_reader.h"
#include "common/grpc/fleet/member_keeper.h"
#include "common/grpc/status.h"
#include "common/grpc/time.h"
#include "common/grpc/tls/tls.h"
#include "common/wire/error_info.h"
#include "sampler.grpc.pb.h"
#include "spdlog/spdlog.h"

namespace millrace {
namespace {

using State = FleetMemberInfo::State;

// Minimum interval between refreshes (reading the list and asking members
// again) that are triggered by callers that found no owner.
constexpr absl::Duration kRefreshInterval = absl::Milliseconds(100);

// A member that answered this recently is not suspected. This is no longer than
// the silence that leads to a suspicion, so that a member that stops right
// after an answer is found as soon as any other, and a pause stays below 2 s.
constexpr absl::Duration kRecentAnswer = absl::Milliseconds(500);

// How often to make gRPC reconnect to a member that does not answer, or not on
// all of its connections. This is gRPC's own longest back-off
// (channel_args.cc), but its timers are late when the clock is set back.
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

std::string_view StateName(State state) {
  switch (state) {
    case State::kUnknown:
      return "unknown";
    case State::kReady:
      return "ready";
    case State::kDraining:
      return "draining";
    case State::kUnreachable:
      return "unreachable";
    case State::kRefused:
      return "refused";
  }
  return "";
}

class Fleet::Core {
 public:
  Core(FleetOptions options, AddressList list);
  ~Core();

  absl::StatusOr<const Manifest*> WaitForManifest(SteadyTime deadline);
  std::vector<std::shared_ptr<FleetMember>> Owners(int partition);
  absl::StatusOr<std::shared_ptr<FleetMember>> Pick(
      int partition, SteadyTime deadline,
      const std::vector<const FleetMember*>& avoid);
  bool OnlyThese(int partition,
                 const std::vector<const FleetMember*>& members) const {
    MutexLock lock(&mutex_);
    return directory_.OnlyThese(partition, members);
  }
  bool AwaitList(SteadyTime since, SteadyTime deadline);
  void ReportFailure(const FleetMember& member, const absl::Status& status);
  void Suspect(const FleetMember& member);
  bool IsLost(const FleetMember& member) const;
  std::vector<FleetMemberInfo> Members() const;
  absl::StatusOr<std::vector<FleetMemberInfo>> AwaitMembers(
      const std::function<bool(const std::vector<FleetMemberInfo>&)>& condition,
      SteadyTime deadline) const;

 private:
  struct DescribeCall {
    std::shared_ptr<FleetEntry> entry;
    SteadyTime deadline;
    bool of_suspect = false;
    bool overdue = false;
    std::unique_ptr<v1::Sampler::Stub> stub;
    ::grpc::ClientContext context;
    v1::DescribeRequest request;
    v1::DescribeReply reply;
  };

  void Run();
  void RefreshList();
  void TakeList(const ListReader::Result& addresses);
  SteadyTime StartDueCalls();
  // Cancels calls whose deadline has passed; returns when to check again. gRPC
  // ends calls at their deadlines too, but late when the clock is set back.
  SteadyTime EndOverdueCalls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the call's deadline.
  SteadyTime StartCall(std::shared_ptr<FleetEntry> entry);
  // Whether to make gRPC connect now; if so, schedules the next time.
  static bool ShouldConnect(FleetEntry& entry);
  void FinishCall(DescribeCall* call, const ::grpc::Status& status);
  void RecordAnswer(const v1::DescribeReply& reply, const absl::Status& status,
                    FleetEntry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RequestRefresh() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes thread_ check what is due.
  void WakeThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NotifyChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits until the count of changes is not `seen`; false if `deadline` passes
  // first.
  bool WaitForChange(uint64_t seen, SteadyTime deadline) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<FleetMemberInfo> MembersLocked() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const FleetOptions options_;
  const AddressList::Kind list_kind_;

  ListReader reader_;
  MemberKeeper keeper_;  // must outlive everything that holds members

  mutable Mutex mutex_;
  CondVar thread_wakes_;
  mutable CondVar changed_;  // changes_, calls_ or list_read_
  FleetDirectory directory_ ABSL_GUARDED_BY(mutex_);
  std::map<DescribeCall*, std::unique_ptr<DescribeCall>> calls_
      ABSL_GUARDED_BY(mutex_);
  SteadyTime next_list_ ABSL_GUARDED_BY(mutex_) = SteadyTime::InfinitePast();
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;  // the list is being read
  // When the last read of the list began, and when the last finished one began.
  SteadyTime list_begun_ ABSL_GUARDED_BY(mutex_) = SteadyTime::InfinitePast();
  SteadyTime list_read_ ABSL_GUARDED_BY(mutex_) = SteadyTime::InfinitePast();
  SteadyTime last_refresh_ ABSL_GUARDED_BY(mutex_) = SteadyTime::InfinitePast();
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;  // number of changes so far
  size_t turn_ ABSL_GUARDED_BY(mutex_) = 0;       // breaks ties in Pick()
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;    // thread_ has something to do
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last, because it uses all of the above
};

Fleet::Core::Core(FleetOptions options, AddressList list)
    : options_(std::move(options)),
      list_kind_(list.kind()),
      reader_(std::move(list)),
      directory_(options_, keeper_) {
  thread_ = std::thread([this] { Run(); });
}

Fleet::Core::~Core() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    for (auto& [call, owner] : calls_) call->context.TryCancel();
    WakeThread();
  }
  reader_.Stop();
  thread_.join();
  MutexLock lock(&mutex_);
  for (auto& [call, owner] : calls_) call->context.TryCancel();
  changed_.Wait(&mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return calls_.empty();
  });
}

void Fleet::Core::Run() {
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

void Fleet::Core::WakeThread() {
  woken_ = true;
  thread_wakes_.NotifyOne();
}

void Fleet::Core::NotifyChange() {
  ++changes_;
  changed_.NotifyAll();
}

void Fleet::Core::RefreshList() {
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

void Fleet::Core::TakeList(const ListReader::Result& addresses) {
  MutexLock lock(&mutex_);
  reading_ = false;
  list_read_ = list_begun_;
  changed_.NotifyAll();
  WakeThread();
  if (stopping_) return;
  if (addresses.ok()) {
    if (directory_.Apply(*addresses)) NotifyChange();
    return;
  }
  // No warning while the file is still empty: `millrace up` fills it once its
  // servers are up.
  const bool unfilled =
      absl::IsNotFound(addresses.status()) && directory_.entries().empty();
  if (directory_.NoteListError(addresses.status()) && !unfilled) {
    spdlog::warn("{}; keeping the servers known so far",
                 std::string(addresses.status().message()));
  }
}

SteadyTime Fleet::Core::StartDueCalls() {
  std::vector<std::shared_ptr<FleetEntry>> due;
  SteadyTime next;
  {
    MutexLock lock(&mutex_);
    if (stopping_) return SteadyTime::InfinitePast();
    const SteadyTime now = SteadyNow();
    // A read in progress will wake this thread when it is done.
    next = reading_ ? SteadyTime::InfiniteFuture() : next_list_;
    next = std::min(next, EndOverdueCalls());
    for (const auto& entry : directory_.Asked()) {
      if (entry->asking) continue;
      if (entry->next_ask <= now) {
        entry->asking = true;
        due.push_back(entry);
      } else {
        next = std::min(next, entry->next_ask);
      }
    }
  }
  for (auto& entry : due) next = std::min(next, StartCall(std::move(entry)));
  return next;
}

SteadyTime Fleet::Core::EndOverdueCalls() {
  SteadyTime next = SteadyTime::InfiniteFuture();
  const SteadyTime now = SteadyNow();
  for (auto& [call, owner] : calls_) {
    if (call->deadline > now) {
      next = std::min(next, call->deadline);
    } else if (!call->overdue) {
      call->overdue = true;
      call->context.TryCancel();
    }
  }
  return next;
}

SteadyTime Fleet::Core::StartCall(std::shared_ptr<FleetEntry> entry) {
  auto owner = std::make_unique<DescribeCall>();
  DescribeCall* call = owner.get();
  call->entry = std::move(entry);
  // Uses the connections in turn: that one works says nothing about the others.
  call->stub = v1::Sampler::NewStub(call->entry->member->NextChannel());
  SteadyTime deadline;
  bool connect = false;
  {
    MutexLock lock(&mutex_);
    connect = ShouldConnect(*call->entry);
    call->of_suspect = call->entry->suspected;
    // If the store is known, so are its splits, or they are not needed.
    call->request.set_look_for_splits(options_.fingerprint.empty() &&
                                      !directory_.settled());
    const absl::Duration timeout =
        call->of_suspect ? options_.suspect_timeout : options_.describe_timeout;
    deadline = call->deadline = SteadyNow() + timeout;
    call->context.set_deadline(ToGrpcTime(deadline));
    calls_.emplace(call, std::move(owner));
  }
  if (connect) {
    for (const auto& channel : call->entry->member->channels) {
      ::grpc::experimental::ChannelResetConnectionBackoff(channel.get());
    }
  }
  call->stub->async()->Describe(
      &call->context, &call->request, &call->reply,
      [this, call](::grpc::Status status) { FinishCall(call, status); });
  return deadline;
}

bool Fleet::Core::ShouldConnect(FleetEntry& entry) {
  const SteadyTime now = SteadyNow();
  const State state = entry.info.state;
  if (state == State::kReady || state == State::kDraining) return false;
  if (now < entry.next_connect) return false;
  entry.next_connect = now + kConnectInterval;
  return true;
}

void Fleet::Core::FinishCall(DescribeCall* call, const ::grpc::Status& status) {
  MutexLock lock(&mutex_);
  FleetEntry& entry = *call->entry;
  FleetMemberInfo& info = entry.info;
  const State before = info.state;
  const bool again = std::exchange(entry.ask_again, false);
  entry.asking = false;
  // If the member has been suspected since the call began, it is asked again,
  // with the shorter timeout.
  const bool cut_short = entry.suspected && !call->of_suspect && !status.ok();
  if (!cut_short) entry.suspected = false;
  if (cut_short && !again) {
    // next_ask is due already.
  } else if (again) {
    info.state = State::kUnknown;
    entry.next_ask = SteadyTime::InfinitePast();
  } else {
    const bool overdue =
        call->overdue && status.error_code() == ::grpc::StatusCode::CANCELLED;
    RecordAnswer(call->reply,
                 overdue ? absl::DeadlineExceededError("Deadline Exceeded")
                         : FromGrpcStatus(status),
                 entry);
  }
  if (info.state != before && !stopping_) {
    spdlog::debug("server {} is {}", info.address,
                  std::string(StateName(info.state)));
    if (info.state == State::kRefused) {
      spdlog::warn("{}", std::string(info.error.message()));
    }
  }
  calls_.erase(call);
  NotifyChange();
  WakeThread();
}

void Fleet::Core::RecordAnswer(const v1::DescribeReply& reply,
                               const absl::Status& status, FleetEntry& entry) {
  const SteadyTime now = SteadyNow();
  FleetMemberInfo& info = entry.info;
  // A server too busy to describe itself is alive.
  const bool busy = absl::IsResourceExhausted(status);
  if (status.ok() || busy) entry.answered = now;
  if (status.ok()) {
    NoteConnection(info.address, options_.tls.get());
    info.error = directory_.Learn(reply, info);
    if (!info.error.ok()) info.state = State::kRefused;
    entry.next_ask = now + options_.ready_interval;
    return;
  }
  info.error = ExplainConnection(status, info.address, options_.tls.get());
  if (!busy) {
    info.state = State::kUnreachable;
  } else if (info.state == State::kUnreachable) {
    info.state = State::kUnknown;
  }
  entry.next_ask = now + options_.retry_interval;
}

void Fleet::Core::RequestRefresh() {
  const SteadyTime now = SteadyNow();
  if (now - last_refresh_ < kRefreshInterval) return;
  last_refresh_ = now;
  if (list_kind_ != AddressList::Kind::kStatic) next_list_ = now;
  for (const auto& entry : directory_.entries()) {
    if (entry->info.state != State::kReady) entry->next_ask = now;
  }
  WakeThread();
}

std::vector<std::shared_ptr<FleetMember>> Fleet::Core::Owners(int partition) {
  MutexLock lock(&mutex_);
  auto owners = directory_.Owners(partition);
  if (owners.empty()) RequestRefresh();
  return owners;
}

bool Fleet::Core::WaitForChange(uint64_t seen, SteadyTime deadline) const {
  const auto is_new = [this, seen]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return changes_ != seen;
  };
  return changed_.WaitUntil(&mutex_, deadline, is_new);
}

absl::StatusOr<std::shared_ptr<FleetMember>> Fleet::Core::Pick(
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

absl::StatusOr<const Manifest*> Fleet::Core::WaitForManifest(
    SteadyTime deadline) {
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

bool Fleet::Core::AwaitList(SteadyTime since, SteadyTime deadline) {
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

void Fleet::Core::ReportFailure(const FleetMember& member,
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
  entry->ask_again = entry->asking;
  NotifyChange();
  WakeThread();
}

void Fleet::Core::Suspect(const FleetMember& member) {
  MutexLock lock(&mutex_);
  FleetEntry* entry = directory_.Find(member);
  if (entry == nullptr || entry->suspected) return;
  if (SteadyNow() - entry->answered < kRecentAnswer) return;
  entry->suspected = true;
  entry->next_ask = SteadyTime::InfinitePast();
  WakeThread();
  // A call that is already in flight has the longer timeout; cancel it and ask
  // again.
  for (auto& [call, owner] : calls_) {
    if (call->entry.get() == entry) call->context.TryCancel();
  }
}

bool Fleet::Core::IsLost(const FleetMember& member) const {
  MutexLock lock(&mutex_);
  const FleetEntry* entry = directory_.Find(member);
  return entry == nullptr || entry->info.state == State::kUnreachable ||
         entry->info.state == State::kRefused;
}

std::vector<FleetMemberInfo> Fleet::Core::Members() const {
  MutexLock lock(&mutex_);
  return MembersLocked();
}

absl::StatusOr<std::vector<FleetMemberInfo>> Fleet::Core::AwaitMembers(
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

std::vector<FleetMemberInfo> Fleet::Core::MembersLocked() const {
  std::vector<FleetMemberInfo> members;
  for (const auto& entry : directory_.entries()) members.push_back(entry->info);
  return members;
}

absl::StatusOr<std::unique_ptr<Fleet>> Fleet::Create(FleetOptions options) {
  MILLRACE_ASSIGN_OR_RETURN(AddressList list, AddressList::Parse(options.list));
  return std::unique_ptr<Fleet>(
      new Fleet(std::make_unique<Core>(std::move(options), std::move(list))));
}

Fleet::Fleet(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Fleet::~Fleet() = default;

absl::StatusOr<const Manifest*> Fleet::WaitForManifest(SteadyTime deadline) {
  return core_->WaitForManifest(deadline);
}

std::vector<std::shared_ptr<FleetMember>> Fleet::Owners(int partition) {
  return core_->Owners(partition);
}

absl::StatusOr<std::shared_ptr<FleetMember>> Fleet::Pick(
    int partition, SteadyTime deadline,
    const std::vector<const FleetMember*>& avoid) {
  return core_->Pick(partition, deadline, avoid);
}

bool Fleet::OnlyThese(int partition,
                      const std::vector<const FleetMember*>& members) const {
  return core_->OnlyThese(partition, members);
}

bool Fleet::AwaitList(SteadyTime since, SteadyTime deadline) {
  return core_->AwaitList(since, deadline);
}

void Fleet::ReportFailure(const FleetMember& member,
                          const absl::Status& status) {
  core_->ReportFailure(member, status);
}

void Fleet::Suspect(const FleetMember& member) { core_->Suspect(member); }

bool Fleet::IsLost(const FleetMember& member) const {
  return core_->IsLost(member);
}

std::vector<FleetMemberInfo> Fleet::Members() const { return core_->Members(); }

absl::StatusOr<std::vector<FleetMemberInfo>> Fleet::AwaitMembers(
    const std::function<bool(const std::vector<FleetMemberInfo>&)>& condition,
    SteadyTime deadline) const {
  return core_->AwaitMembers(condition, deadline);
}

}  // namespace millrace
