// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/graph/manifest.h"
#include "common/grpc/fleet/address_list.h"
#include "common/grpc/fleet/fleet_directory.h"
#include "common/grpc/fleet/fleet_member.h"
#include "common/grpc/fleet/fleet_options.h"
#include "common/grpc/fleet/fleet_transport.h"
#include "common/grpc/fleet/list_reader.h"
#include "common/grpc/fleet/member_keeper.h"
#include "common/grpc/fleet/replicas.h"

namespace millrace {

// The directory of a fleet: keeps the list of addresses up to date, asks every
// member what it serves (Describe), and hands out channels by partition. One
// background thread asks the members; another one reads the list if that can
// take time. Only WaitForManifest, Pick, AwaitMembers and AwaitList block.
// Threads: any thread may call any method.
class Fleet final : public Replicas {
 public:
  // Parses the list; does not wait for any server.
  // INVALID_ARGUMENT: not a valid LIST; the message names the bad entry.
  // `transport`: null for gRPC.
  static absl::StatusOr<std::unique_ptr<Fleet>> Create(
      FleetOptions options,
      std::unique_ptr<FleetTransport> transport = nullptr);
  // Cancels calls in flight without waiting for servers, and waits at most 2 s
  // for a list that is being read (see ListReader). Waits until members that
  // were handed out have been released (see MemberKeeper).
  ~Fleet() override;
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // The schema and books of the store that the fleet serves, and the splits
  // that any member has. Waits for one member to answer, and then up to half a
  // second more for the others in the list. The result lives as long as the
  // fleet.
  // UNAVAILABLE: no member answered by `deadline`; the message says what was
  // tried. All other errors are returned at once, since waiting does not help.
  // UNAUTHENTICATED, PERMISSION_DENIED: certificates or names keep us from
  // using any member. FAILED_PRECONDITION: all members were refused, or they
  // have different stores and the options do not say which to use. CANCELLED:
  // the program was interrupted.
  absl::StatusOr<const Manifest*> WaitForManifest(SteadyTime deadline);

  // Members that serve `partition` and accept calls, draining ones last. If
  // there are none, the list is read and all members are asked again at once.
  std::vector<std::shared_ptr<FleetMember>> Owners(int partition);

  // Picks the owner of `partition` with the fewest outstanding bytes that is
  // not in `avoid`, taking turns among equals. A busy owner (see ReportFailure)
  // is picked only if all are busy. Does not wait if `deadline` has passed.
  // Errors name the partition and what was tried. UNAVAILABLE: there is no
  // owner by `deadline`, or (at once) all owners are in `avoid`.
  // FAILED_PRECONDITION, DATA_LOSS: the servers of the partition were refused
  // or have damaged files, and all others answer.
  absl::StatusOr<std::shared_ptr<FleetMember>> Pick(
      int partition, SteadyTime deadline,
      const std::vector<const FleetMember*>& avoid = {}) override;

  // Whether `members`, at least one, are all the servers of a partition and
  // everyone else in the list answers, so that there is nobody to wait for.
  bool OnlyThese(int partition,
                 const std::vector<const FleetMember*>& members) const;

  // Whether an attempt to read the list has begun and ended since `since`. If
  // not, starts one and waits for it until `deadline` (not at all if that has
  // passed).
  bool AwaitList(SteadyTime since, SteadyTime deadline);

  // Reports that a call failed. A member whose connection broke, or that
  // refused what another one may accept, is asked again before it is handed
  // out. One that refused because it is overloaded counts as busy for as long
  // as it says (see BusyTime).
  void ReportFailure(const FleetMember& member, const absl::Status& status);

  // Asks a member that is thought to be alive whether it is, at once, unless it
  // answered within the last half second. It counts as lost if it does not
  // answer within suspect_timeout.
  void Suspect(const FleetMember& member) override;
  // Whether a member does not answer or was refused.
  bool IsLost(const FleetMember& member) const override;

  // All members in the list, in its order.
  std::vector<FleetMemberInfo> Members() const;
  // The same, as soon as `condition` is true of them, or at `deadline`.
  // CANCELLED: the program was interrupted.
  absl::StatusOr<std::vector<FleetMemberInfo>> AwaitMembers(
      const std::function<bool(const std::vector<FleetMemberInfo>&)>& condition,
      SteadyTime deadline) const;

 private:
  // A Describe call in flight.
  struct PendingDescribe {
    std::shared_ptr<FleetEntry> entry;   // shared with the directory
    std::shared_ptr<DescribeCall> call;  // shared with those who cancel it
    SteadyTime deadline = {};
    bool is_suspect = false;
    bool overdue = false;
  };

  struct StateChange {
    FleetMemberInfo member;
    bool first;  // nothing has been logged of this member before
  };

  using DescribeCalls = std::vector<std::shared_ptr<DescribeCall>>;

  Fleet(FleetOptions options, AddressList list,
        std::unique_ptr<FleetTransport> transport);

  void Run();
  void RefreshList();
  void TakeList(const ListReader::Result& addresses);
  // Returns whether to warn that the list cannot be read.
  bool NoteList(const ListReader::Result& addresses);
  SteadyTime StartDueCalls();
  // Returns each call in flight once its deadline has passed, to be cancelled
  // without the lock. gRPC ends calls at their deadlines too, but late when the
  // clock is set back.
  DescribeCalls TakeOverdueCalls(SteadyTime now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The earliest deadline of the calls that are not overdue yet.
  SteadyTime NextDeadline() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CancelAllCalls();
  // Returns the call's deadline.
  SteadyTime StartCall(std::shared_ptr<FleetEntry> entry);
  // Whether to make gRPC connect now; if so, schedules the next time.
  static bool ShouldConnect(FleetEntry& entry);
  static void LogChange(const StateChange& change);
  void FinishCall(PendingDescribe* pending, absl::Status status,
                  const v1::DescribeReply& reply);
  // Returns the change to log, if there is one.
  std::optional<StateChange> NoteAnswer(const PendingDescribe& pending,
                                        absl::Status status,
                                        const v1::DescribeReply& reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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

  const std::unique_ptr<FleetTransport> transport_;
  ListReader reader_;
  MemberKeeper keeper_;  // must outlive everything that holds members

  mutable Mutex mutex_;
  CondVar thread_wakes_;
  mutable CondVar changed_;  // changes_, calls_ or list_read_
  FleetDirectory directory_ ABSL_GUARDED_BY(mutex_);
  std::map<PendingDescribe*, std::unique_ptr<PendingDescribe>> calls_
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

}  // namespace millrace
