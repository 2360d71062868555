// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/steady_time.h"
#include "common/graph/manifest.h"
#include "common/grpc/channel_args.h"
#include "common/grpc/fleet/replicas.h"
#include "common/grpc/tls/tls_files.h"

namespace millrace {

// One server of the fleet. `outstanding_bytes` is maintained by callers that
// want their load balanced (see Fleet::Pick); the rest never changes.
struct FleetMember {
  // Returns the connections in turn. They are shared with calls in flight. One
  // thread at a time receives on a connection and one sends, so streams are
  // spread over several.
  const std::shared_ptr<::grpc::Channel>& NextChannel() {
    return channels[turn++ % channels.size()];
  }

  std::string address;  // "host:port" or "[v6]:port"
  std::vector<std::shared_ptr<::grpc::Channel>> channels;  // at least one
  std::atomic<uint32_t> turn{0};
  std::atomic<int64_t> outstanding_bytes{0};
};

// A snapshot of what is known about a member.
struct FleetMemberInfo {
  enum class State {
    kUnknown,      // has not answered yet
    kReady,        // answers, and belongs to this fleet
    kDraining,     // answers, but takes no new Sample calls
    kUnreachable,  // does not answer
    kRefused,      // has another store or version
  };
  std::string address;
  State state = State::kUnknown;
  std::vector<int> partitions;
  std::map<int, std::string> damaged;  // what is wrong, by partition
  std::string version;
  uint64_t inflight_bytes = 0;
  uint64_t max_inflight_bytes = 0;
  absl::Duration uptime;
  bool other_store = false;  // the reason for kRefused
  absl::Status error;        // the reason for kUnreachable or kRefused
};

// "ready", "draining", ...; "unknown" before the first answer.
std::string_view StateName(FleetMemberInfo::State state);

struct FleetOptions {
  // Where the servers are: "host:port,host:port", "@FILE" (an address or a list
  // on each line, '#' starts a comment) or "dns:///name:port".
  std::string list;

  // Members with another fingerprint are refused. If empty, the first member
  // that answers decides.
  std::string fingerprint;

  int max_receive_bytes = kMaxMessageBytes;
  int connections = 2;  // per member
  absl::Duration describe_timeout = absl::Seconds(5);
  absl::Duration suspect_timeout = absl::Seconds(1);
  absl::Duration file_interval = absl::Seconds(1);
  absl::Duration dns_interval = absl::Seconds(10);
  // How often members that answer are asked again, and how often those that do
  // not.
  absl::Duration ready_interval = absl::Seconds(5);
  absl::Duration retry_interval = absl::Milliseconds(500);

  // Shared with the channels; see OpenClientTls(). Null means plaintext.
  std::shared_ptr<TlsFiles> tls;
};

// The directory of a fleet: keeps the list of addresses up to date, asks every
// member what it serves (Describe), and hands out channels by partition. One
// background thread asks the members; another one reads the list if that can
// take time. Only WaitForManifest, Pick, AwaitMembers and AwaitList block.
// Threads: any thread may call any method.
class Fleet final : public Replicas {
 public:
  // Parses the list; does not wait for any server.
  // INVALID_ARGUMENT: not a valid LIST; the message names the bad entry.
  static absl::StatusOr<std::unique_ptr<Fleet>> Create(FleetOptions options);
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
  // tried. All other errors are returned without waiting, since time does not
  // cure them. UNAUTHENTICATED, PERMISSION_DENIED: certificates or names keep
  // us from using any member. FAILED_PRECONDITION: all members were refused, or
  // they have different stores and the options do not say which to use.
  // CANCELLED: the program was interrupted.
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
  class Core;
  explicit Fleet(std::unique_ptr<Core> core);
  const std::unique_ptr<Core> core_;
};

}  // namespace millrace
