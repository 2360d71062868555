// SPDX-License-Identifier: Apache-2.0
#include "client/train/collectives.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "client/tensor/torch_status.h"
#include "common/base/file.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

// Collectives have no deadline of their own that a slow evaluation of
// another rank could miss: losses are the heartbeat's business.
constexpr std::chrono::hours kNoDeadline{24 * 7};

// Between two looks for a store.
constexpr int kSliceMs = 100;

struct AddressListDeleter {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

// The address of this host that packets to `host` leave from; empty if that
// cannot be told. A host's own name often resolves to an address that other
// hosts cannot reach (Debian: 127.0.1.1).
std::string AddressTowards(const std::string& host) {
  addrinfo* found = nullptr;
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  if (getaddrinfo(host.c_str(), "9", &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, AddressListDeleter> list(found);
  const UniqueFd fd(socket(list->ai_family, SOCK_DGRAM, 0));
  sockaddr_storage own{};
  socklen_t length = sizeof(own);
  // Connecting a datagram socket sends nothing; it only picks the route.
  if (fd.get() < 0 || connect(fd.get(), list->ai_addr, list->ai_addrlen) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) {
    return "";
  }
  char text[NI_MAXHOST];
  const int failed =
      getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof(text),
                  nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? text : "";
}

std::shared_ptr<gloo::transport::Device> MakeDevice(const std::string& host) {
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME")) {
    return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  }
  const std::string address = AddressTowards(host);
  return address.empty()
             ? c10d::ProcessGroupGloo::createDefaultDevice()
             : c10d::ProcessGroupGloo::createDeviceForHostname(address);
}

// Whether somebody accepts connections there. Gives each address a slice to
// answer; the look-up of the name takes what the resolver takes.
bool Listens(const GroupAddress& group) {
  addrinfo* found = nullptr;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(group.host.c_str(), std::to_string(group.port).c_str(),
                  &hints, &found) != 0) {
    return false;
  }
  const std::unique_ptr<addrinfo, AddressListDeleter> list(found);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const UniqueFd fd(socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK, 0));
    if (connect(fd.get(), at->ai_addr, at->ai_addrlen) == 0) return true;
    pollfd connecting{fd.get(), POLLOUT, 0};
    int error = errno;
    socklen_t length = sizeof(error);
    if (error == EINPROGRESS && poll(&connecting, 1, kSliceMs) == 1 &&
        getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 &&
        error == 0) {
      return true;
    }
  }
  return false;
}

// c10d's own wait for a store cannot be interrupted.
absl::Status AwaitListener(const GroupAddress& group, SteadyTime deadline) {
  const SteadyTime start = SteadyNow();
  while (!Listens(group)) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    if (SteadyNow() >= deadline) {
      return absl::UnavailableError(StrCat(
          "rank ", group.rank, " waited ",
          absl::FormatDuration(
              absl::Trunc(SteadyNow() - start, absl::Milliseconds(1))),
          " for the store of rank 0 at ", group.host, ":", group.port,
          "\nstart rank 0 too, with the same MASTER_ADDR and MASTER_PORT"));
    }
    absl::SleepFor(absl::Milliseconds(kSliceMs));
  }
  return absl::OkStatus();
}

}  // namespace

struct Collectives::Group {
  c10::intrusive_ptr<c10d::TCPStore> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
};

Collectives::Collectives(const GroupAddress& group) : group_(group) {}

Collectives::~Collectives() {
  if (heartbeat_ != nullptr && !ended_) {
    Fail(absl::AbortedError("ended before its time"));
  }
  heartbeat_.reset();
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
  c10d_ = std::make_unique<Group>();
  silence_ = options.heartbeat.silence;
  const SteadyTime deadline = SteadyNow() + options.store_timeout;
  absl::Status met = MeetAtStore(options, deadline);
  // Until the group of an earlier start has ended, and its store with it.
  while (!met.ok() && heartbeat_ != nullptr && heartbeat_->store_is_old() &&
         SteadyNow() < deadline && !Interrupted()) {
    heartbeat_.reset();
    c10d_->store.reset();
    absl::SleepFor(absl::Milliseconds(kSliceMs));
    met = MeetAtStore(options, deadline);
  }
  MILLRACE_RETURN_IF_ERROR(met);
  auto gloo_options = c10d::ProcessGroupGloo::Options::create(
      absl::ToChronoMilliseconds(options.start_timeout));
  gloo_options->devices.push_back(MakeDevice(group_.host));
  absl::Status joined = Run("joining the group", [&] {
    c10d_->gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10d_->store, group_.rank, group_.world, gloo_options);
  });
  if (joined.ok()) c10d_->gloo->setTimeout(kNoDeadline);
  return joined;
}

absl::Status Collectives::MeetAtStore(const CollectiveOptions& options,
                                      SteadyTime deadline) {
  // From its store on, rank 0 is watched: every word with a store whose rank
  // 0 is stopped hangs, the first one too.
  if (group_.rank == 0) {
    MILLRACE_RETURN_IF_ERROR(OpenStore(deadline));
    heartbeat_ = Heartbeat::Start(group_, options.heartbeat);
  } else {
    MILLRACE_RETURN_IF_ERROR(AwaitListener(group_, deadline));
    heartbeat_ = Heartbeat::Start(group_, options.heartbeat);
    MILLRACE_RETURN_IF_ERROR(OpenStore(deadline));
  }
  return Meet(options.start_timeout);
}

absl::Status Collectives::OpenStore(SteadyTime deadline) {
  const std::string address = StrCat(group_.host, ":", group_.port);
  c10d::TCPStoreOptions store_options;
  store_options.port = group_.port;
  store_options.isServer = group_.rank == 0;
  store_options.waitWorkers = false;
  store_options.timeout = absl::ToChronoMilliseconds(
      std::max(deadline - SteadyNow(), absl::Seconds(1)));
  try {
    c10d_->store =
        c10::make_intrusive<c10d::TCPStore>(group_.host, store_options);
  } catch (const c10::Error& error) {
    const std::string what = error.what_without_backtrace();
    return absl::UnavailableError(StrCat(
        group_.rank == 0 ? "rank 0 cannot open its store at "
                         : "no store of rank 0 answers at ",
        address, ": ", what.substr(0, what.find('\n')),
        "\nMASTER_ADDR must be an address of rank 0's host, MASTER_PORT a "
        "free port there"));
  }
  return absl::OkStatus();
}

// Asks the heartbeat alone, since a question to the store may hang.
absl::Status Collectives::Meet(absl::Duration timeout) {
  const SteadyTime deadline = SteadyNow() + timeout;
  while (true) {
    // In slices, so that an interrupt ends the wait.
    const std::vector<int> missing =
        heartbeat_->WaitForAll(absl::Milliseconds(kSliceMs));
    // First, since others that are interrupted too look failed.
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_RETURN_IF_ERROR(heartbeat_->status());
    if (missing.empty()) return absl::OkStatus();
    if (SteadyNow() < deadline) continue;
    return absl::DeadlineExceededError(
        StrCat(missing.size() == 1 ? "rank " : "ranks ",
               absl::StrJoin(missing, ", "), " of ", group_.world,
               " did not come within ", absl::FormatDuration(timeout),
               "\nstart every rank with the same MASTER_ADDR, MASTER_PORT and "
               "WORLD_SIZE"));
  }
}

absl::Status Collectives::Run(const char* what,
                              const std::function<void()>& call) {
  MILLRACE_RETURN_IF_ERROR(heartbeat_->status());
  absl::Status done = CatchTorch(what, [&]() -> absl::Status {
    call();
    return absl::OkStatus();
  });
  if (done.ok()) return done;
  // A torn connection comes before the silence that names the rank.
  absl::Status loss = heartbeat_->WaitForLoss(silence_ + absl::Seconds(3));
  return loss.ok() ? done : loss;
}

absl::Status Collectives::AllReduceSum(at::Tensor tensor) {
  if (c10d_ == nullptr) return absl::OkStatus();
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return Run("all-reduce", [&] { c10d_->gloo->allreduce(tensors)->wait(); });
}

absl::Status Collectives::Broadcast(at::Tensor tensor, int root) {
  if (c10d_ == nullptr) return absl::OkStatus();
  std::vector<at::Tensor> tensors{std::move(tensor)};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  return Run("broadcast",
             [&] { c10d_->gloo->broadcast(tensors, options)->wait(); });
}

absl::StatusOr<std::vector<char>> Collectives::ShareBytes(
    std::vector<char> bytes) {
  if (c10d_ == nullptr) return bytes;
  return CatchTorch("sharing rank 0's bytes",
                    [&]() -> absl::StatusOr<std::vector<char>> {
                      at::Tensor size = at::zeros({1}, at::kLong);
                      size.fill_(static_cast<int64_t>(bytes.size()));
                      MILLRACE_RETURN_IF_ERROR(Broadcast(size, 0));
                      const int64_t count = size.item().toLong();
                      if (count == 0) return std::vector<char>();
                      at::Tensor content = at::empty({count}, at::kByte);
                      auto* data = content.mutable_data_ptr<uint8_t>();
                      if (rank() == 0)
                        std::memcpy(data, bytes.data(), bytes.size());
                      MILLRACE_RETURN_IF_ERROR(Broadcast(content, 0));
                      return std::vector<char>(data, data + count);
                    });
}

absl::StatusOr<bool> Collectives::ShareAnswer(bool answer) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<char> shared,
                            ShareBytes({answer ? 'y' : 'n'}));
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
  // Rank 0 takes the store with it: the others shall read why first.
  if (group_.rank == 0) heartbeat_->WaitForOthers(absl::Seconds(3));
}

}  // namespace millrace
