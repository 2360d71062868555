// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/steady_time.h"
#include "common/graph/manifest.h"
#include "common/grpc/fleet/busy_time.h"
#include "common/grpc/fleet/fleet_member.h"
#include "common/grpc/fleet/fleet_options.h"
#include "common/grpc/fleet/fleet_transport.h"
#include "common/grpc/fleet/member_keeper.h"

namespace millrace {

// A member and what is known about it. The entry of a member that has left the
// list is kept while the member is held or being asked.
struct FleetEntry {
  std::shared_ptr<FleetMember> member;  // shared with calls to it
  FleetMemberInfo info;
  MemberState logged = MemberState::kUnknown;  // the last state in the log
  SteadyTime next_ask = SteadyTime::InfinitePast();
  SteadyTime answered = SteadyTime::InfinitePast();  // when it last answered
  // When to make gRPC connect again, unless the member answers by then.
  SteadyTime next_connect = SteadyTime::InfinitePast();
  BusyTime busy;
  bool describe_in_flight = false;
  bool ask_again = false;  // a failure was reported meanwhile
  bool suspected = false;  // see Fleet::Suspect
};

// What a Fleet knows: the members that are in the list or still have calls in
// flight, what each of them serves, and the store that they share. Makes no
// calls itself.
// Not thread-safe; Fleet guards it.
class FleetDirectory {
 public:
  // Shared between the list and the Describe calls in flight.
  using Entries = std::vector<std::shared_ptr<FleetEntry>>;

  // `transport` connects the members and `keeper` makes them; both must outlive
  // it.
  FleetDirectory(const FleetOptions& options, const FleetTransport& transport,
                 MemberKeeper& keeper)
      : options_(options), transport_(transport), keeper_(keeper) {}

  // Adopts the addresses of a list that was read; returns whether they have
  // changed. Members that are no longer in it are not handed out any more, but
  // are kept for those who hold them.
  bool Apply(const std::vector<std::string>& addresses);
  // Records that the list could not be read; returns whether the error is new.
  bool NoteListError(const absl::Status& error);
  const Entries& entries() const { return entries_; }
  // entries(), and those that have left the list but are still held.
  Entries EntriesToAsk();
  // A member's entry; null if the member was never handed out.
  FleetEntry* Find(const FleetMember& member) const;

  // Records a member's answer. FAILED_PRECONDITION: it has another version or
  // store.
  absl::Status Learn(const v1::DescribeReply& reply, FleetMemberInfo& info);
  // Whether any member has neither answered nor been found unreachable.
  bool AnyUnknown() const;
  // Set by the first answer. Until it is settled, splits that only other
  // members have are added, and those that differ between members are marked.
  const std::optional<Manifest>& manifest() const { return manifest_; }
  bool settled() const { return settled_; }
  void Settle() { settled_ = true; }

  // Members in the list and in `state` that serve `partition`.
  Entries OwnersIn(FleetMemberInfo::State state, int partition) const;
  // The ready ones, followed by those that are draining.
  std::vector<std::shared_ptr<FleetMember>> Owners(int partition) const;

  // Whether no member is unknown or unreachable.
  bool AllAnswer() const;
  // See Fleet::OnlyThese.
  bool OnlyThese(int partition,
                 const std::vector<const FleetMember*>& members) const;

  // The error that says why nobody serves the partition. DATA_LOSS or
  // FAILED_PRECONDITION if its servers have damaged files or are refused and
  // all others answer, so that there is nobody to wait for; otherwise
  // UNAVAILABLE.
  absl::Status NoOwner(int partition) const;
  // FAILED_PRECONDITION: members have different stores, and the options do not
  // say which one is meant.
  absl::Status CheckOneStore() const;
  // If every server in the list was refused or keeps us out by certificates or
  // names, which waiting does not fix, the error of the first one.
  absl::Status AllShutOut() const;
  // All members in the list and their states, for messages.
  std::string Tried() const;

 private:
  std::shared_ptr<FleetEntry> MakeEntry(const std::string& address) const;
  absl::Status LearnManifest(const v1::DescribeReply& reply,
                             const std::string& address);
  // Merges `theirs`, the splits of the member at `address`, into `ours`.
  template <typename Split>
  void MergeSplits(const std::vector<Split>& theirs, const std::string& address,
                   std::vector<Split>& ours);

  const FleetOptions options_;
  const FleetTransport& transport_;
  MemberKeeper& keeper_;

  Entries entries_;
  Entries left_;  // members that have left the list
  std::optional<Manifest> manifest_;
  bool settled_ = false;
  std::string manifest_from_;  // address
  // The index of a split in the manifest, and the first member that has it.
  struct KnownSplit {
    size_t place;
    std::string from;  // address
  };
  std::map<std::string, KnownSplit> known_splits_;  // by the split's folder
  absl::Status list_error_;
};

}  // namespace millrace
