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
#include "common/grpc/tls_files.h"

namespace millrace {

// One server of the fleet. `outstanding_bytes` is kept by callers that want
// load spread (see Fleet::Pick); the rest never changes.
struct FleetMember {
  // One connection after the other; shared with calls in flight. A connection
  // is received by one thread and sent by one thread at a time, so streams
  // are spread over several.
  const std::shared_ptr<::grpc::Channel>& NextChannel() {
    return channels[turn++ % channels.size()];
  }

  std::string address;  // "host:port" or "[v6]:port"
  std::vector<std::shared_ptr<::grpc::Channel>> channels;  // at least one
  std::atomic<uint32_t> turn{0};
  std::atomic<int64_t> outstanding_bytes{0};
};

// What is known of a member; a snapshot.
struct FleetMemberInfo {
  enum class State {
    kUnknown,      // not asked yet
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
  bool other_store = false;  // why refused
  absl::Status error;        // why unreachable or refused
};

// "ready", "draining", ...; "unknown" before the first answer.
std::string_view StateName(FleetMemberInfo::State state);

struct FleetOptions {
  // LIST of the command line: "host:port,host:port", "@FILE" (one address or
  // list a line, '#' starts a comment), "dns:///name:port".
  std::string list;

  // Members with another fingerprint are refused. Empty: the first member
  // that answers decides.
  std::string fingerprint;

  int max_receive_bytes = kMaxMessageBytes;
  int connections = 2;  // to each member
  absl::Duration describe_timeout = absl::Seconds(5);
  absl::Duration suspect_timeout = absl::Seconds(1);
  absl::Duration file_interval = absl::Seconds(1);
  absl::Duration dns_interval = absl::Seconds(10);
  // How often members that answer are asked again, and those that do not.
  absl::Duration ready_interval = absl::Seconds(5);
  absl::Duration retry_interval = absl::Milliseconds(500);

  // Shared with the channels; see OpenClientTls(). Null: plaintext.
  std::shared_ptr<TlsFiles> tls;
};

// The directory of a fleet: keeps the list of addresses fresh, asks every
// member what it serves (Describe), and hands out channels by partition. One
// background thread does all the asking, another one reads the list where that
// can take time; only WaitForManifest, Pick, AwaitMembers and AwaitList block.
// Threads: any thread may call any method.
class Fleet {
 public:
  // Parses the list; does not wait for anyone.
  // INVALID_ARGUMENT: not a LIST (names the entry).
  static absl::StatusOr<std::unique_ptr<Fleet>> Create(FleetOptions options);
  // Cancels what is in flight; does not wait for servers, and for a list that
  // is being read at most 2 s (see ListReader). Waits until members that were
  // handed out are let go (see MemberKeeper).
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // Schema and books of the store that the fleet serves, and the splits that
  // any of its members has, once one member answered and the others of the list
  // did too or had half a second more. The reference lives as long as the
  // fleet. UNAVAILABLE: nobody of this fleet answered by `deadline` (says what
  // was tried). All other errors come without waiting, since time does not mend
  // them. UNAUTHENTICATED, PERMISSION_DENIED: TLS or names keep us from all.
  // FAILED_PRECONDITION: all were refused, or they have several stores and the
  // options do not say which. CANCELLED: the program was interrupted.
  absl::StatusOr<const Manifest*> WaitForManifest(SteadyTime deadline);

  // Members that serve `partition` and take calls, draining ones last. When
  // there is none, the list is read again and everyone asked at once.
  std::vector<std::shared_ptr<FleetMember>> Owners(int partition);

  // The owner with the least outstanding bytes that is not in `avoid`, ties
  // in turn, one that is busy (see ReportFailure) only where all are. Errors
  // name the partition and what was tried: UNAVAILABLE when there is none by
  // `deadline` (a past deadline: does not wait), or at once when all are in
  // `avoid`; FAILED_PRECONDITION or DATA_LOSS when those of it are refused or
  // have damaged files, and all others answer.
  absl::StatusOr<std::shared_ptr<FleetMember>> Pick(
      int partition, SteadyTime deadline,
      const std::vector<const FleetMember*>& avoid = {});

  // Whether these are all the servers of a partition, one at least, and
  // everyone else in the list answers: there is nobody to wait for.
  bool OnlyThese(int partition,
                 const std::vector<const FleetMember*>& members) const;

  // Whether the list has been read, or could not be, since `since`; else has it
  // read again and waits for that until `deadline` (a past one: does not wait).
  bool AwaitList(SteadyTime since, SteadyTime deadline);

  // Tells that a call failed: a member whose connection broke, or that refuses
  // what another one may take, is asked again before it is handed out. One that
  // refuses for want of room is busy for as long as it says (see BusyTime).
  void ReportFailure(const FleetMember& member, const absl::Status& status);

  // Asks a member that is thought to live at once whether it does, unless it
  // answered within the last half second; it is lost unless it answers within
  // suspect_timeout.
  void Suspect(const FleetMember& member);
  // Whether a member is known not to answer or was refused.
  bool IsLost(const FleetMember& member) const;

  // All members of the list, in its order.
  std::vector<FleetMemberInfo> Members() const;
  // The same once `condition` is true of them, or at `deadline`.
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
