// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/train/group/group.h"
#include "client/train/group/heartbeat.h"
#include "common/base/steady_time.h"

namespace millrace {

struct CollectiveOptions {
  // How long a rank waits for rank 0, at whose port the ranks meet, and, once
  // all have joined, for connections to the others.
  absl::Duration meet_timeout = absl::Minutes(1);
  // How long the ranks wait for each other to join.
  absl::Duration start_timeout = absl::Minutes(5);
  HeartbeatOptions heartbeat;
};

// Communication between trainers, by c10d over Gloo. All ranks make the same
// calls in the same order. In a group of one, there are no connections, and a
// rank has its own data as the group's.
// Errors of all calls: UNAVAILABLE: a rank is lost or has failed (names it).
// INTERNAL: the transport failed although every rank is alive.
// Threads: one at a time.
class Collectives {
 public:
  // Meets the other ranks, and logs which ones it waits for. UNAVAILABLE: rank
  // 0 is not at the group's address within meet_timeout, or cannot listen
  // there, or a rank that had joined is lost (names it), or ranks cannot reach
  // each other. DEADLINE_EXCEEDED: ranks did not join within start_timeout
  // (names them). FAILED_PRECONDITION: the group's address is not rank 0's, or
  // ranks have different secrets. INVALID_ARGUMENT: GLOO_SOCKET_IFNAME names an
  // interface that this host does not have. CANCELLED: interrupted.
  static absl::StatusOr<std::unique_ptr<Collectives>> Connect(
      const GroupAddress& group, const CollectiveOptions& options = {});
  // Ends the group for this rank: calls Fail() unless Finish() or Fail() was
  // called before.
  ~Collectives();

  int rank() const { return group_.rank; }
  int world() const { return group_.world; }

  // Sums in place. The tensor must be contiguous, on the CPU and of equal shape
  // on all ranks. The result has the same bits on every rank and in every run.
  absl::Status AllReduceSum(at::Tensor tensor);
  // The halves of AllReduceSum(): StartSum() returns at once, and FinishSums()
  // waits for all that were started. In between, leave the tensors alone and
  // make no other calls.
  absl::Status StartSum(at::Tensor tensor);
  absl::Status FinishSums();
  // Returns the tensors of all ranks, [world, ...], bit for bit. They must have
  // equal shape and type, and be on the CPU.
  absl::StatusOr<at::Tensor> GatherRows(const at::Tensor& own);
  // Returns the bytes of all ranks, each of any length, in their order.
  absl::StatusOr<std::vector<std::string>> GatherBytes(
      const std::string& bytes);
  // Copies root's tensor, which is on the CPU, into every rank's.
  absl::Status Broadcast(at::Tensor tensor, int root);
  // Returns rank 0's bytes, of any length, on every rank. Also UNAVAILABLE: the
  // bytes received are not signed with the group's secret.
  absl::StatusOr<std::string> ShareBytes(std::string bytes);
  // Returns rank 0's answer on every rank.
  absl::StatusOr<bool> ShareAnswer(bool answer);
  absl::Status Barrier();

  // UNAVAILABLE: a rank is known to be lost or to have failed (names it).
  absl::Status status() const;
  // The same after an error that a lost rank may have caused: waits until it is
  // known which, for as long as that takes at most.
  absl::Status WaitForLoss() const;

  // Tells the others that this rank is done, and waits until they are done too
  // (rank 0 serves them until then).
  absl::Status Finish();
  // Tells the others why this rank ends.
  void Fail(const absl::Status& why);

 private:
  struct Group;
  explicit Collectives(const GroupAddress& group);
  absl::Status Join(const CollectiveOptions& options);
  absl::Status Meet(const CollectiveOptions& options, SteadyTime deadline);
  absl::Status Listen(SteadyTime deadline);
  absl::Status Find(SteadyTime deadline);
  void WarnWithoutSecret() const;
  absl::Status WaitForAll(absl::Duration timeout);
  absl::Status OpenStore(absl::Duration timeout, int listening_socket);
  absl::Status ConnectGloo(const std::vector<std::string>& interfaces,
                           absl::Duration timeout);
  absl::StatusOr<std::string> BroadcastBytes(std::string bytes);
  // Runs one collective; on an error waits for the heartbeat to name a rank.
  absl::Status Run(const char* what, const std::function<void()>& call);

  const GroupAddress group_;
  absl::Duration silence_;
  GroupAddress meeting_point_;  // group_ with a numeric address
  std::string own_address_;     // address of this host on the way to rank 0
  std::string loopback_note_;   // for the log if only this host reaches rank 0
  int64_t shared_ = 0;          // calls of ShareBytes
  bool ended_ = false;
  std::unique_ptr<Group> c10d_;           // null in a group of one
  std::unique_ptr<Heartbeat> heartbeat_;  // null in a group of one
};

}  // namespace millrace
