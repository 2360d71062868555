// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet.h"

#include <grpcpp/create_channel.h>

#include <algorithm>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/grpc/address_list.h"
#include "common/grpc/status.h"
#include "common/wire/error_info.h"
#include "common/wire/job_proto.h"
#include "sampler.grpc.pb.h"
#include "spdlog/spdlog.h"

namespace millrace {
namespace {

using State = FleetMemberInfo::State;

// Demands for news come with every call that finds no owner; more often than
// this nobody is asked again.
constexpr absl::Duration kDemandInterval = absl::Milliseconds(100);

std::string_view StateName(State state) {
  switch (state) {
    case State::kUnknown:
      return "not answered yet";
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

bool Serves(const FleetMemberInfo& info, int partition) {
  return std::find(info.partitions.begin(), info.partitions.end(), partition) !=
         info.partitions.end();
}

// The member with the least outstanding bytes that is not in `avoid`; `turn`
// decides among equals. Null: none.
std::shared_ptr<FleetMember> LeastLoaded(
    const std::vector<std::shared_ptr<FleetMember>>& members,
    const std::vector<const FleetMember*>& avoid, size_t turn) {
  std::shared_ptr<FleetMember> best;
  int64_t least = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const auto& member = members[(i + turn) % members.size()];
    if (std::find(avoid.begin(), avoid.end(), member.get()) != avoid.end()) {
      continue;
    }
    const int64_t load = member->outstanding_bytes;
    if (!best || load < least) {
      best = member;
      least = load;
    }
  }
  return best;
}

}  // namespace

class Fleet::Core {
 public:
  Core(FleetOptions options, AddressList list);
  ~Core();

  absl::StatusOr<const Manifest*> WaitForManifest(absl::Time deadline);
  std::vector<std::shared_ptr<FleetMember>> Owners(int partition);
  absl::StatusOr<std::shared_ptr<FleetMember>> Pick(
      int partition, absl::Time deadline,
      const std::vector<const FleetMember*>& avoid);
  void ReportFailure(const FleetMember& member, const absl::Status& status);
  std::vector<FleetMemberInfo> Members() const;

 private:
  // A member and what is known of it; kept while it is asked, even when it
  // left the list meanwhile (hence the shared_ptr between list and Ask).
  struct Entry {
    std::shared_ptr<FleetMember> member;
    std::unique_ptr<v1::Sampler::Stub> stub;
    FleetMemberInfo info;
    absl::Time next_ask = absl::InfinitePast();
    bool asking = false;
    bool ask_again = false;  // a failure was reported during the ask
  };
  // One Describe in flight.
  struct Ask {
    std::shared_ptr<Entry> entry;
    ::grpc::ClientContext context;
    v1::DescribeRequest request;
    v1::DescribeReply reply;
  };

  void Run();
  void RefreshList();
  void ApplyList(const std::vector<std::string>& addresses);
  std::shared_ptr<Entry> MakeEntry(const std::string& address) const;
  absl::Time StartDueAsks();
  void StartAsk(std::shared_ptr<Entry> entry);
  void FinishAsk(Ask* ask, const ::grpc::Status& status);
  absl::Status TakeReply(const v1::DescribeReply& reply, FleetMemberInfo& info)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Demand() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::shared_ptr<FleetMember>> OwnersIn(State state,
                                                     int partition) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::shared_ptr<FleetMember>> OwnersLocked(int partition) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status NoOwner(int partition) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Tried() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for news after `seen`; false once `deadline` is over.
  bool AwaitNews(uint64_t seen, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const FleetOptions options_;
  const AddressList list_;

  mutable absl::Mutex mutex_;
  std::vector<std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  std::map<Ask*, std::unique_ptr<Ask>> asks_ ABSL_GUARDED_BY(mutex_);
  std::optional<Manifest> manifest_ ABSL_GUARDED_BY(mutex_);  // set once
  std::string manifest_from_ ABSL_GUARDED_BY(mutex_);
  absl::Status list_error_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_list_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time last_demand_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  uint64_t news_ ABSL_GUARDED_BY(mutex_) = 0;  // counts changes
  size_t turn_ ABSL_GUARDED_BY(mutex_) = 0;    // breaks ties of Pick
  bool wake_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: runs on all of the above
};

Fleet::Core::Core(FleetOptions options, AddressList list)
    : options_(std::move(options)), list_(std::move(list)) {
  thread_ = std::thread([this] { Run(); });
}

Fleet::Core::~Core() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (auto& [ask, owner] : asks_) ask->context.TryCancel();
  }
  thread_.join();
  absl::MutexLock lock(&mutex_);
  for (auto& [ask, owner] : asks_) ask->context.TryCancel();
  mutex_.Await(absl::Condition(
      +[](std::map<Ask*, std::unique_ptr<Ask>>* asks) { return asks->empty(); },
      &asks_));
}

void Fleet::Core::Run() {
  while (true) {
    RefreshList();
    const absl::Time next = StartDueAsks();
    absl::MutexLock lock(&mutex_);
    const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return wake_ || stopping_;
    };
    mutex_.AwaitWithDeadline(absl::Condition(&ready), next);
    wake_ = false;
    if (stopping_) return;
  }
}

void Fleet::Core::RefreshList() {
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = absl::Now();
    if (now < next_list_) return;
    next_list_ = list_.kind() == AddressList::Kind::kStatic
                     ? absl::InfiniteFuture()
                 : list_.kind() == AddressList::Kind::kFile
                     ? now + options_.file_interval
                     : now + options_.dns_interval;
  }
  const auto addresses = list_.Read();  // may block: no lock held
  if (addresses.ok()) {
    ApplyList(*addresses);
    return;
  }
  absl::MutexLock lock(&mutex_);
  if (list_error_ != addresses.status()) {
    spdlog::warn("{}; keeping the servers known so far",
                 std::string(addresses.status().message()));
  }
  list_error_ = addresses.status();
}

std::shared_ptr<Fleet::Core::Entry> Fleet::Core::MakeEntry(
    const std::string& address) const {
  auto entry = std::make_shared<Entry>();
  entry->member = std::make_shared<FleetMember>();
  entry->member->address = address;
  for (int i = 0; i < std::max(1, options_.connections); ++i) {
    entry->member->channels.push_back(::grpc::CreateCustomChannel(
        address,
        options_.credentials ? options_.credentials
                             : ::grpc::InsecureChannelCredentials(),
        ClientChannelArguments(options_.max_receive_bytes)));
  }
  entry->stub = v1::Sampler::NewStub(entry->member->channels.front());
  entry->info.address = address;
  return entry;
}

void Fleet::Core::ApplyList(const std::vector<std::string>& addresses) {
  absl::MutexLock lock(&mutex_);
  list_error_ = absl::OkStatus();
  std::vector<std::shared_ptr<Entry>> entries;
  bool changed = addresses.size() != entries_.size();
  for (const std::string& address : addresses) {
    const auto known = std::find_if(
        entries_.begin(), entries_.end(),
        [&](const auto& entry) { return entry->info.address == address; });
    changed |= known == entries_.end();
    entries.push_back(known == entries_.end() ? MakeEntry(address) : *known);
  }
  entries_ = std::move(entries);
  if (changed) ++news_;
}

absl::Time Fleet::Core::StartDueAsks() {
  std::vector<std::shared_ptr<Entry>> due;
  absl::Time next;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return absl::InfinitePast();
    const absl::Time now = absl::Now();
    next = next_list_;
    for (const auto& entry : entries_) {
      if (entry->asking) continue;
      if (entry->next_ask <= now) {
        entry->asking = true;
        due.push_back(entry);
      } else {
        next = std::min(next, entry->next_ask);
      }
    }
  }
  for (auto& entry : due) StartAsk(std::move(entry));
  return next;
}

void Fleet::Core::StartAsk(std::shared_ptr<Entry> entry) {
  auto owner = std::make_unique<Ask>();
  Ask* ask = owner.get();
  ask->entry = std::move(entry);
  ask->context.set_deadline(
      absl::ToChronoTime(absl::Now() + options_.describe_timeout));
  {
    absl::MutexLock lock(&mutex_);
    asks_.emplace(ask, std::move(owner));
  }
  ask->entry->stub->async()->Describe(
      &ask->context, &ask->request, &ask->reply,
      [this, ask](::grpc::Status status) { FinishAsk(ask, status); });
}

void Fleet::Core::FinishAsk(Ask* ask, const ::grpc::Status& status) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = *ask->entry;
  FleetMemberInfo& info = entry.info;
  const State before = info.state;
  const bool again = std::exchange(entry.ask_again, false);
  entry.asking = false;
  if (again) {
    info.state = State::kUnknown;
    entry.next_ask = absl::InfinitePast();
  } else if (status.ok()) {
    info.error = TakeReply(ask->reply, info);
    if (!info.error.ok()) info.state = State::kRefused;
    entry.next_ask = absl::Now() + options_.ready_interval;
  } else {
    info.error = FromGrpcStatus(status);
    info.state = State::kUnreachable;
    entry.next_ask = absl::Now() + options_.retry_interval;
  }
  if (info.state != before && !stopping_) {
    spdlog::debug("server {} is {}", info.address,
                  std::string(StateName(info.state)));
    if (info.state == State::kRefused) {
      spdlog::warn("{}", std::string(info.error.message()));
    }
  }
  ++news_;
  wake_ = true;
  asks_.erase(ask);
}

absl::Status Fleet::Core::TakeReply(const v1::DescribeReply& reply,
                                    FleetMemberInfo& info) {
  info.version = reply.version();
  info.partitions.assign(reply.partitions().begin(), reply.partitions().end());
  info.inflight_bytes = reply.inflight_bytes();
  info.max_inflight_bytes = reply.max_inflight_bytes();
  info.uptime = absl::Seconds(reply.uptime_seconds());
  if (reply.protocol_version() != kProtocolVersion ||
      reply.sampling_version() != kSamplingVersion) {
    return absl::FailedPreconditionError(StrCat(
        "server ", info.address, " has protocol version ",
        reply.protocol_version(), " and sampling version ",
        reply.sampling_version(), ", this program has ", kProtocolVersion,
        " and ", kSamplingVersion, "\nrun the same version everywhere"));
  }
  const std::string& expected =
      manifest_ ? manifest_->fingerprint : options_.fingerprint;
  if (!expected.empty() && reply.fingerprint() != expected) {
    return absl::FailedPreconditionError(StrCat(
        "server ", info.address, " has another store: fingerprint ",
        reply.fingerprint(), ", expected ", expected,
        manifest_from_.empty() ? "" : StrCat(" as ", manifest_from_, " has"),
        "\nserve one store everywhere"));
  }
  if (!manifest_) {
    auto manifest = ManifestFromProto(reply);
    if (!manifest.ok()) {
      return absl::FailedPreconditionError(
          StrCat("server ", info.address, " describes an impossible store: ",
                 std::string(manifest.status().message())));
    }
    manifest_ = *std::move(manifest);
    manifest_from_ = info.address;
  }
  info.state = reply.draining() ? State::kDraining : State::kReady;
  return absl::OkStatus();
}

void Fleet::Core::Demand() {
  const absl::Time now = absl::Now();
  if (now - last_demand_ < kDemandInterval) return;
  last_demand_ = now;
  if (list_.kind() != AddressList::Kind::kStatic) next_list_ = now;
  for (const auto& entry : entries_) {
    if (entry->info.state != State::kReady) entry->next_ask = now;
  }
  wake_ = true;
}

std::vector<std::shared_ptr<FleetMember>> Fleet::Core::OwnersIn(
    State state, int partition) const {
  std::vector<std::shared_ptr<FleetMember>> owners;
  for (const auto& entry : entries_) {
    if (entry->info.state == state && Serves(entry->info, partition)) {
      owners.push_back(entry->member);
    }
  }
  return owners;
}

std::vector<std::shared_ptr<FleetMember>> Fleet::Core::OwnersLocked(
    int partition) const {
  auto owners = OwnersIn(State::kReady, partition);
  const auto draining = OwnersIn(State::kDraining, partition);
  owners.insert(owners.end(), draining.begin(), draining.end());
  return owners;
}

std::vector<std::shared_ptr<FleetMember>> Fleet::Core::Owners(int partition) {
  absl::MutexLock lock(&mutex_);
  auto owners = OwnersLocked(partition);
  if (owners.empty()) Demand();
  return owners;
}

bool Fleet::Core::AwaitNews(uint64_t seen, absl::Time deadline) {
  const auto changed = [this, seen]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return news_ != seen;
  };
  return mutex_.AwaitWithDeadline(absl::Condition(&changed), deadline);
}

absl::StatusOr<std::shared_ptr<FleetMember>> Fleet::Core::Pick(
    int partition, absl::Time deadline,
    const std::vector<const FleetMember*>& avoid) {
  absl::MutexLock lock(&mutex_);
  while (true) {
    ++turn_;
    std::shared_ptr<FleetMember> best;
    bool any = false;
    for (const State state : {State::kReady, State::kDraining}) {
      const auto owners = OwnersIn(state, partition);
      any |= !owners.empty();
      if (!best) best = LeastLoaded(owners, avoid, turn_);
    }
    if (best) return best;
    if (any) return NoOwner(partition);  // all are to be avoided
    Demand();
    // Wakes at least as often as demands are heard.
    const absl::Time soon = absl::Now() + kDemandInterval;
    AwaitNews(news_, std::min(deadline, soon));
    if (absl::Now() >= deadline && OwnersLocked(partition).empty()) {
      return NoOwner(partition);
    }
  }
}

std::string Fleet::Core::Tried() const {
  std::string tried;
  for (const auto& entry : entries_) {
    const FleetMemberInfo& info = entry->info;
    tried += StrCat(tried.empty() ? "" : "; ", info.address, ": ",
                    StateName(info.state));
    if (info.error.ok() && !info.partitions.empty()) {
      tried += ", serves";
      for (const int partition : info.partitions) {
        tried += StrCat(" ", partition);
      }
    } else if (!info.error.ok()) {
      const std::string message(info.error.message());
      tried += StrCat(", ", message.substr(0, message.find('\n')));
    }
    if (tried.size() > 600) return tried + "; ...";
  }
  if (!list_error_.ok()) {
    tried +=
        StrCat(tried.empty() ? "" : "; ", std::string(list_error_.message()));
  }
  return tried.empty() ? StrCat(list_.text(), " names nobody") : tried;
}

absl::Status Fleet::Core::NoOwner(int partition) const {
  for (const auto& entry : entries_) {
    const FleetMemberInfo& info = entry->info;
    if (info.state == State::kRefused && Serves(info, partition)) {
      return WithErrorInfo(absl::FailedPreconditionError(
                               StrCat("partition ", partition, ": ",
                                      std::string(info.error.message()))),
                           {.partition = partition});
    }
  }
  return WithErrorInfo(
      absl::UnavailableError(StrCat("partition ", partition,
                                    ": no server to ask (", Tried(),
                                    ")\nstart a server of it, or correct the "
                                    "list of servers")),
      {.partition = partition});
}

absl::StatusOr<const Manifest*> Fleet::Core::WaitForManifest(
    absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  while (!manifest_) {
    Demand();
    const absl::Time soon = absl::Now() + kDemandInterval;
    AwaitNews(news_, std::min(deadline, soon));
    if (manifest_ || absl::Now() < deadline) continue;
    for (const auto& entry : entries_) {
      if (entry->info.state == State::kRefused) return entry->info.error;
    }
    return absl::UnavailableError(
        StrCat("no server of the fleet answers (", Tried(),
               ")\nstart the servers, or correct the list"));
  }
  return &*manifest_;
}

void Fleet::Core::ReportFailure(const FleetMember& member,
                                const absl::Status& status) {
  if (!IsRetryable(status) && !absl::IsDeadlineExceeded(status)) return;
  // Overload says nothing about the connection.
  if (absl::IsResourceExhausted(status)) return;
  absl::MutexLock lock(&mutex_);
  for (const auto& entry : entries_) {
    if (entry->member.get() != &member) continue;
    entry->info.error = status;
    entry->info.state = State::kUnknown;
    entry->next_ask = absl::InfinitePast();
    entry->ask_again = entry->asking;
    ++news_;
    wake_ = true;
  }
}

std::vector<FleetMemberInfo> Fleet::Core::Members() const {
  absl::MutexLock lock(&mutex_);
  std::vector<FleetMemberInfo> members;
  for (const auto& entry : entries_) members.push_back(entry->info);
  return members;
}

absl::StatusOr<std::unique_ptr<Fleet>> Fleet::Create(FleetOptions options) {
  MILLRACE_ASSIGN_OR_RETURN(AddressList list, AddressList::Parse(options.list));
  return std::unique_ptr<Fleet>(
      new Fleet(std::make_unique<Core>(std::move(options), std::move(list))));
}

Fleet::Fleet(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Fleet::~Fleet() = default;

absl::StatusOr<const Manifest*> Fleet::WaitForManifest(absl::Time deadline) {
  return core_->WaitForManifest(deadline);
}

std::vector<std::shared_ptr<FleetMember>> Fleet::Owners(int partition) {
  return core_->Owners(partition);
}

absl::StatusOr<std::shared_ptr<FleetMember>> Fleet::Pick(
    int partition, absl::Time deadline,
    const std::vector<const FleetMember*>& avoid) {
  return core_->Pick(partition, deadline, avoid);
}

void Fleet::ReportFailure(const FleetMember& member,
                          const absl::Status& status) {
  core_->ReportFailure(member, status);
}

std::vector<FleetMemberInfo> Fleet::Members() const { return core_->Members(); }

}  // namespace millrace
