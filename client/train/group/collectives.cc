// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/collectives.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <openssl/sha.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "client/tensor/torch_status.h"
#include "client/train/group/interruptible_call.h"
#include "client/train/group/rendezvous.h"
#include "client/train/group/signed_store.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/file/file.h"

namespace millrace {
namespace {

// Practically no deadline, since a slow evaluation on another rank must not end
// a collective. The heartbeat notices ranks that are lost.
constexpr std::chrono::hours kNoDeadline{24 * 7};

// How soon an interrupt is noticed.
constexpr absl::Duration kSlice = absl::Milliseconds(100);

constexpr int kNoSocket = -1;

using Gloo = c10d::ProcessGroupGloo;
using GlooPtr = c10::intrusive_ptr<Gloo>;

std::string Sha256(const std::string& bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

}  // namespace

struct Collectives::Group {
  c10::intrusive_ptr<c10d::TCPStore> store;
  GlooPtr gloo;
  std::vector<c10::intrusive_ptr<c10d::Work>> sums;  // that were started
};

Collectives::Collectives(const GroupAddress& group) : group_(group) {}

Collectives::~Collectives() {
  if (heartbeat_ != nullptr && !ended_) {
    Fail(absl::AbortedError("ended early"));
  }
  heartbeat_.reset();
  // After an error, sums may wait for a rank that is lost, and Gloo for them.
  if (c10d_ != nullptr && !c10d_->sums.empty()) {
    std::thread([waiting = std::move(c10d_)] {}).detach();
  }
}

absl::StatusOr<std::unique_ptr<Collectives>> Collectives::Connect(
    const GroupAddress& group, const CollectiveOptions& options) {
  auto collectives = std::unique_ptr<Collectives>(new Collectives(group));
  if (group.world > 1) {
    const absl::Status joined =
        CatchTorch("joining the group of trainers",
                   [&] { return collectives->Join(options); });
    if (!joined.ok()) {
      collectives->Fail(joined);
      return joined;
    }
  }
  return collectives;
}

absl::Status Collectives::Join(const CollectiveOptions& options) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<std::string> interfaces,
                            GlooInterfaces());
  c10d_ = std::make_unique<Group>();
  silence_ = options.heartbeat.silence;
  const SteadyTime deadline = SteadyNow() + options.meet_timeout;
  absl::Status met = Meet(options, deadline);
  // Tries until the group of an earlier start has ended and freed the port.
  while (!met.ok() && heartbeat_ != nullptr && heartbeat_->group_is_old() &&
         SteadyNow() < deadline) {
    heartbeat_.reset();
    absl::SleepFor(kSlice);
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    met = Meet(options, deadline);
  }
  MILLRACE_RETURN_IF_ERROR(met);
  return ConnectGloo(interfaces, options.meet_timeout);
}

// If rank 0 is stopped, every call to its store hangs, even the first one. So
// only the heartbeat, which notices that, calls it until all ranks have joined.
absl::Status Collectives::Meet(const CollectiveOptions& options,
                               SteadyTime deadline) {
  meeting_point_ = group_;
  const bool listens = group_.rank == 0 && !group_.agent_listens;
  MILLRACE_RETURN_IF_ERROR(listens ? Listen(deadline) : Find(deadline));
  heartbeat_ = Heartbeat::Start(meeting_point_, options.heartbeat);
  MILLRACE_RETURN_IF_ERROR(WaitForAll(options.start_timeout));
  return listens ? absl::OkStatus()
                 : OpenStore(options.meet_timeout, kNoSocket);
}

absl::Status Collectives::Listen(SteadyTime deadline) {
  MILLRACE_ASSIGN_OR_RETURN(BoundSocket socket,
                            BindAtMeetingPoint(group_, deadline - SteadyNow()));
  meeting_point_.host = own_address_ = socket.address;
  if (socket.loopback && socket.address != group_.host) {
    loopback_note_ = StrCat(" at ", group_.host, ", which is ", socket.address,
                            " here, so other hosts cannot reach it");
  }
  if (!socket.loopback) WarnWithoutSecret();
  // The store takes over the socket.
  return OpenStore(absl::Seconds(10), socket.fd.release());
}

absl::Status Collectives::Find(SteadyTime deadline) {
  MILLRACE_ASSIGN_OR_RETURN(const MeetingPoint point,
                            FindMeetingPoint(group_, deadline - SteadyNow()));
  meeting_point_.host = point.address;
  own_address_ = point.own_address;
  if (group_.rank == 0 && !point.loopback) WarnWithoutSecret();
  return absl::OkStatus();
}

void Collectives::WarnWithoutSecret() const {
  if (!group_.secret.empty()) return;
  LogWarning(
      "ranks meet without a secret: anyone who reaches that port can pass for "
      "a rank\ngive every rank the same rendezvous_secret",
      {{"address", StrCat(meeting_point_.host, ":", group_.port)}});
}

absl::Status Collectives::OpenStore(absl::Duration timeout,
                                    int listening_socket) {
  c10d::TCPStoreOptions store_options;
  store_options.port = group_.port;
  store_options.waitWorkers = false;
  store_options.timeout = absl::ToChronoMilliseconds(timeout);
  if (listening_socket != kNoSocket) {
    store_options.isServer = true;
    store_options.masterListenFd = listening_socket;
  }
  try {
    c10d_->store =
        c10::make_intrusive<c10d::TCPStore>(meeting_point_.host, store_options);
  } catch (const c10::Error& error) {
    const std::string what = error.what_without_backtrace();
    return absl::UnavailableError(StrCat(
        "rank ", group_.rank, " cannot ",
        store_options.isServer ? "listen at " : "talk to rank 0 at ",
        group_.host, ":", group_.port, ": ", what.substr(0, what.find('\n')),
        store_options.isServer
            ? "\nset MASTER_PORT to a free port of this host, on every rank"
            : "\nstart the group again"));
  }
  return absl::OkStatus();
}

absl::Status Collectives::WaitForAll(absl::Duration timeout) {
  const SteadyTime deadline = SteadyNow() + timeout;
  WaitNotice notice(deadline);
  while (true) {
    const std::vector<int> missing = heartbeat_->WaitForAll(kSlice);
    // Comes before the status, because ranks that are interrupted as well look
    // as if they had failed.
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_RETURN_IF_ERROR(heartbeat_->status());
    if (missing.empty()) return absl::OkStatus();
    const std::string who =
        StrCat(missing.size() == 1 ? "rank " : "ranks ",
               absl::StrJoin(missing, ", "), " of ", group_.world);
    if (SteadyNow() < deadline) {
      notice.Say(StrCat(who, loopback_note_));
      continue;
    }
    return absl::DeadlineExceededError(
        StrCat(who, " did not join within ", absl::FormatDuration(timeout),
               loopback_note_,
               "\nstart every rank with the same MASTER_ADDR, MASTER_PORT and "
               "WORLD_SIZE"));
  }
}

// Gloo has no deadline of its own for a peer whose port drops packets.
absl::Status Collectives::ConnectGloo(
    const std::vector<std::string>& interfaces, absl::Duration timeout) {
  auto options = Gloo::Options::create(absl::ToChronoMilliseconds(timeout));
  // Signed, so that strangers cannot make a rank connect to them.
  auto store =
      c10::make_intrusive<SignedStore>(c10d_->store, heartbeat_->signer());
  const auto connect = [=, rank = group_.rank, world = group_.world,
                        address = own_address_] {
    return CatchTorch("connecting the ranks", [&]() -> absl::StatusOr<GlooPtr> {
      for (const std::string& interface : interfaces) {
        options->devices.push_back(Gloo::createDeviceForInterface(interface));
      }
      if (interfaces.empty()) {
        options->devices.push_back(Gloo::createDeviceForHostname(address));
      }
      return c10::make_intrusive<Gloo>(store, rank, world, options);
    });
  };
  const auto connected = CallInterruptibly(SteadyNow() + timeout, connect);
  if (connected.ok() && connected->ok()) {
    c10d_->gloo = **connected;
    c10d_->gloo->setTimeout(kNoDeadline);
    return absl::OkStatus();
  }
  MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
  if (connected.ok()) {
    MILLRACE_RETURN_IF_ERROR(WaitForLoss());
    if (!absl::IsInternal(connected->status())) return connected->status();
  }
  return absl::UnavailableError(
      StrCat(connected.ok() ? std::string(connected->status().message())
                            : StrCat("rank ", group_.rank,
                                     " is not connected to all others after ",
                                     absl::FormatDuration(timeout)),
             "\nlet the hosts of all ranks reach each other on all ports; "
             "GLOO_SOCKET_IFNAME chooses the interface"));
}

absl::Status Collectives::status() const {
  return heartbeat_ == nullptr ? absl::OkStatus() : heartbeat_->status();
}

// A connection breaks before the silence that shows which rank was lost.
absl::Status Collectives::WaitForLoss() const {
  return heartbeat_ == nullptr
             ? absl::OkStatus()
             : heartbeat_->WaitForLoss(silence_ + absl::Seconds(3));
}

absl::Status Collectives::Run(const char* what,
                              const std::function<void()>& call) {
  MILLRACE_RETURN_IF_ERROR(heartbeat_->status());
  absl::Status done = CatchTorch(what, [&]() -> absl::Status {
    call();
    return absl::OkStatus();
  });
  if (done.ok()) return done;
  MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
  absl::Status loss = WaitForLoss();
  return loss.ok() ? done : loss;
}

absl::Status Collectives::AllReduceSum(at::Tensor tensor) {
  MILLRACE_RETURN_IF_ERROR(StartSum(std::move(tensor)));
  return FinishSums();
}

absl::Status Collectives::StartSum(at::Tensor tensor) {
  if (c10d_ == nullptr) return absl::OkStatus();
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return Run("all-reduce",
             [&] { c10d_->sums.push_back(c10d_->gloo->allreduce(tensors)); });
}

absl::Status Collectives::FinishSums() {
  if (c10d_ == nullptr) return absl::OkStatus();
  return Run("all-reduce", [&] {
    for (const auto& sum : std::exchange(c10d_->sums, {})) sum->wait();
  });
}

absl::StatusOr<at::Tensor> Collectives::GatherRows(const at::Tensor& own) {
  return CatchTorch("gathering rows", [&]() -> absl::StatusOr<at::Tensor> {
    std::vector<int64_t> shape = own.sizes().vec();
    shape.insert(shape.begin(), world());
    const at::Tensor rows = at::zeros(shape, own.scalar_type());
    rows[rank()].copy_(own);
    // The other ranks have zeros where this one has its row. Adds up bytes,
    // since a sum of numbers may change bits.
    MILLRACE_RETURN_IF_ERROR(
        AllReduceSum(rows.view({rows.numel()}).view(at::kByte)));
    return rows;
  });
}

absl::StatusOr<std::vector<std::string>> Collectives::GatherBytes(
    const std::string& bytes) {
  using Texts = std::vector<std::string>;
  return CatchTorch("gathering bytes", [&]() -> absl::StatusOr<Texts> {
    const at::Tensor size = at::zeros({1}, at::kLong);
    size.fill_(static_cast<int64_t>(bytes.size()));
    MILLRACE_ASSIGN_OR_RETURN(const at::Tensor sizes, GatherRows(size));
    // Rows have equal lengths, of at least 1.
    const at::Tensor own =
        at::zeros({sizes.max().item().toLong() + 1}, at::kByte);
    std::memcpy(own.mutable_data_ptr(), bytes.data(), bytes.size());
    MILLRACE_ASSIGN_OR_RETURN(const at::Tensor rows, GatherRows(own));
    Texts texts;
    for (int r = 0; r < world(); ++r) {
      texts.emplace_back(static_cast<const char*>(rows[r].const_data_ptr()),
                         sizes[r].item().toLong());
    }
    return texts;
  });
}

absl::Status Collectives::Broadcast(at::Tensor tensor, int root) {
  if (c10d_ == nullptr) return absl::OkStatus();
  std::vector<at::Tensor> tensors{std::move(tensor)};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  return Run("broadcast",
             [&] { c10d_->gloo->broadcast(tensors, options)->wait(); });
}

absl::StatusOr<std::string> Collectives::ShareBytes(std::string bytes) {
  if (c10d_ == nullptr) return bytes;
  const MessageSigner signer = heartbeat_->signer();
  const std::string key = StrCat("shared/", shared_++);
  MILLRACE_ASSIGN_OR_RETURN(const std::string digest,
                            BroadcastBytes(signer.Sign(key, Sha256(bytes))));
  MILLRACE_ASSIGN_OR_RETURN(std::string shared,
                            BroadcastBytes(std::move(bytes)));
  if (signer.Verify(key, digest) == Sha256(shared)) return shared;
  return absl::UnavailableError(
      "the data received as rank 0's is not signed with the group's secret\n"
      "run the ranks in a network that nobody else can reach");
}

// Returns rank 0's bytes, which strangers may have changed on the way.
absl::StatusOr<std::string> Collectives::BroadcastBytes(std::string bytes) {
  return CatchTorch(
      "sharing rank 0's bytes", [&]() -> absl::StatusOr<std::string> {
        at::Tensor size = at::zeros({1}, at::kLong);
        size.fill_(static_cast<int64_t>(bytes.size()));
        MILLRACE_RETURN_IF_ERROR(Broadcast(size, 0));
        const int64_t count = size.item().toLong();
        if (count == 0) return std::string();
        at::Tensor content = at::empty({count}, at::kByte);
        auto* data = static_cast<char*>(content.mutable_data_ptr());
        if (rank() == 0) std::memcpy(data, bytes.data(), bytes.size());
        MILLRACE_RETURN_IF_ERROR(Broadcast(content, 0));
        if (rank() != 0) bytes.assign(data, content.nbytes());
        return std::move(bytes);
      });
}

absl::StatusOr<bool> Collectives::ShareAnswer(bool answer) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string shared,
                            ShareBytes(answer ? "y" : "n"));
  return shared[0] == 'y';
}

absl::Status Collectives::Barrier() {
  if (c10d_ == nullptr) return absl::OkStatus();
  return AllReduceSum(at::zeros({1}, at::kFloat));
}

absl::Status Collectives::Finish() {
  if (heartbeat_ == nullptr || ended_) return absl::OkStatus();
  MILLRACE_RETURN_IF_ERROR(Barrier());
  ended_ = true;
  heartbeat_->Finish();
  if (group_.rank == 0) heartbeat_->WaitForOthers(absl::Seconds(10));
  return absl::OkStatus();
}

void Collectives::Fail(const absl::Status& why) {
  if (heartbeat_ == nullptr || ended_) return;
  ended_ = true;
  heartbeat_->Fail(why);
  // Rank 0's store ends with it, so the others need time to read the reason.
  if (group_.rank == 0) heartbeat_->WaitForOthers(absl::Seconds(3));
}

}  // namespace millrace
