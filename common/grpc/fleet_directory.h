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
#include "common/grpc/busy_time.h"
#include "common/grpc/fleet.h"
#include "common/grpc/member_keeper.h"
#include "common/grpc/tls.h"

namespace millrace {

namespace v1 {
class DescribeReply;
}  // namespace v1

// A member and what is known of it. One that has left the list is kept while
// somebody holds the member or it is asked.
struct FleetEntry {
  std::shared_ptr<FleetMember> member;
  FleetMemberInfo info;
  SteadyTime next_ask = SteadyTime::InfinitePast();
  SteadyTime answered = SteadyTime::InfinitePast();  // last
  // When gRPC is made to connect next, unless all is well by then.
  SteadyTime next_connect = SteadyTime::InfinitePast();
  BusyTime busy;
  bool asking = false;
  bool ask_again = false;  // a failure was reported during the ask
  bool suspected = false;  // an answer is wanted soon
};

// What a Fleet knows: who is in the list or has calls to end, what each serves,
// and the store of them all. Asks nobody.
// Threads: one at a time; Fleet guards it.
class FleetDirectory {
 public:
  // Shared between the list and the asks in flight.
  using Entries = std::vector<std::shared_ptr<FleetEntry>>;

  // `keeper` makes the members and must outlive it.
  FleetDirectory(const FleetOptions& options, MemberKeeper& keeper)
      : options_(options),
        credentials_(options.tls, options.list),
        keeper_(keeper) {}

  // Takes over the addresses of a list that was read; whether it is another.
  // Members that are no longer in it serve nothing, but are kept for those who
  // hold them.
  bool Apply(const std::vector<std::string>& addresses);
  // The list could not be read; whether that is news.
  bool NoteListError(const absl::Status& error);
  const Entries& entries() const { return entries_; }
  // These, and those that have left the list and somebody holds.
  Entries Asked();
  // A member's entry; null if the member was never handed out.
  FleetEntry* Find(const FleetMember& member) const;

  // Takes a member's answer. FAILED_PRECONDITION: it is of another version or
  // store.
  absl::Status Learn(const v1::DescribeReply& reply, FleetMemberInfo& info);
  // Whether some have neither answered nor been found unreachable.
  bool AnyUnknown() const;
  // Set by the first answer. Until it is settled, splits that only others have
  // are added, and those that are not the same everywhere are marked.
  const std::optional<Manifest>& manifest() const { return manifest_; }
  bool settled() const { return settled_; }
  void Settle() { settled_ = true; }

  // Members of the list in `state` that serve `partition`.
  Entries OwnersIn(FleetMemberInfo::State state, int partition) const;
  // The ready ones and then those that drain.
  std::vector<std::shared_ptr<FleetMember>> Owners(int partition) const;

  // Whether no member is unknown or unreachable.
  bool AllAnswer() const;
  // See Fleet::OnlyThese.
  bool OnlyThese(int partition,
                 const std::vector<const FleetMember*>& members) const;

  // Why nobody serves the partition: DATA_LOSS or FAILED_PRECONDITION when
  // those that do have damaged files or are refused and all others answer, so
  // that nobody need be waited for; else UNAVAILABLE.
  absl::Status NoOwner(int partition) const;
  // FAILED_PRECONDITION: members have different stores, and nobody has said
  // which one is meant.
  absl::Status CheckOneStore() const;
  // The error of the first when every server of the list either was refused
  // or keeps us out by certificates or names, which waiting does not mend.
  absl::Status AllShutOut() const;
  // Everyone in the list and how they are, for messages.
  std::string Tried() const;

 private:
  std::shared_ptr<FleetEntry> MakeEntry(const std::string& address) const;
  absl::Status LearnManifest(const v1::DescribeReply& reply,
                             const std::string& address);
  // Splits of `theirs` that a member at `address` has.
  template <typename Split>
  void MergeSplits(const std::vector<Split>& theirs, const std::string& address,
                   std::vector<Split>& ours);

  const FleetOptions options_;
  const ClientCredentials credentials_;
  MemberKeeper& keeper_;

  Entries entries_;
  Entries left_;  // the list
  std::optional<Manifest> manifest_;
  bool settled_ = false;
  std::string manifest_from_;  // address
  // Where a split stands in the manifest, and the first member that has it.
  struct KnownSplit {
    size_t place;
    std::string from;  // address
  };
  std::map<std::string, KnownSplit> known_splits_;  // by the split's folder
  absl::Status list_error_;
};

}  // namespace millrace
