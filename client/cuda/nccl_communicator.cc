// SPDX-License-Identifier: Apache-2.0
#include "client/cuda/nccl_communicator.h"

#include <nccl.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "client/cuda/call_in_time.h"
#include "client/cuda/poll_pause.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"

namespace millrace::cuda {
namespace {

// How long NCCL may take to end a communicator.
constexpr absl::Duration kEndTimeout = absl::Seconds(10);

LogFields OverdueFields(int rank) {
  return {{"rank", rank}, {"seconds", absl::ToInt64Seconds(kEndTimeout)}};
}

constexpr char kNetworkAdvice[] =
    "\nlet the hosts of all ranks reach each other on all ports; "
    "NCCL_SOCKET_IFNAME chooses the interface, and NCCL_DEBUG=INFO says more";

// The first bytes of what rank 0 sends: its unique id follows, or why it has
// none.
constexpr std::string_view kIdMark = "i";
constexpr std::string_view kErrorMark = "e";

std::string TextOf(ncclResult_t result, ncclComm_t communicator) {
  const std::string_view last = ncclGetLastError(communicator);
  const std::string_view line = last.substr(0, last.find('\n'));
  return line.empty() ? ncclGetErrorString(result)
                      : StrCat(ncclGetErrorString(result), ": ", line);
}

std::string MakeId() {
  ncclUniqueId id;
  const ncclResult_t made = ncclGetUniqueId(&id);
  if (made != ncclSuccess) return StrCat(kErrorMark, TextOf(made, nullptr));
  return StrCat(kIdMark, std::string_view(id.internal, sizeof id.internal));
}

absl::StatusOr<ncclUniqueId> ReadId(std::string_view shared) {
  const std::string_view mark = shared.substr(0, 1);
  if (mark == kErrorMark) {
    return absl::UnavailableError(
        StrCat("rank 0 cannot start NCCL: ", shared.substr(1), kNetworkAdvice));
  }
  ncclUniqueId id;
  if (mark != kIdMark || shared.size() != 1 + sizeof id.internal) {
    return absl::InternalError(StrCat("rank 0 sent ", shared.size(),
                                      " bytes, which are no id of NCCL"));
  }
  std::memcpy(id.internal, shared.data() + 1, sizeof id.internal);
  return id;
}

// Also tells the other ranks if rank 0 cannot make an id, since they would wait
// for it.
absl::StatusOr<ncclUniqueId> ShareId(const NcclGroup& group) {
  const absl::StatusOr<std::string> shared =
      group.share(group.rank == 0 ? MakeId() : "");
  MILLRACE_RETURN_IF_ERROR(shared.status());
  return ReadId(*shared);
}

// The variable would override the configuration, and NCCL's calls would wait
// for lost ranks.
absl::Status CheckEnvironment() {
  const char* const blocking = std::getenv("NCCL_COMM_BLOCKING");
  if (blocking == nullptr || std::string_view(blocking) == "0") {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      StrCat("NCCL_COMM_BLOCKING is ", blocking,
             ", but calls of NCCL must not block\nunset it"));
}

// What NCCL refuses when ranks meet.
absl::Status RefusedGroup(const std::string& text) {
  return absl::FailedPreconditionError(
      StrCat("NCCL refuses the group: ", text,
             "\ngive all ranks the same version of NCCL and variables NCCL_*"));
}

absl::Status FailureOf(ncclResult_t result, const std::string& text,
                       const NcclGroup& group) {
  const std::string message = StrCat("NCCL failed on rank ", group.rank,
                                     " although all ranks are alive: ", text);
  switch (result) {
    case ncclUnhandledCudaError:
      return AsDeviceFailure(absl::UnavailableError(text), group.device);
    case ncclSystemError:
    case ncclRemoteError:
      return absl::UnavailableError(StrCat(message, kNetworkAdvice));
    default:
      return absl::InternalError(
          StrCat(message, "\nNCCL_DEBUG=INFO says more"));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<NcclCommunicator>> NcclCommunicator::Connect(
    const NcclGroup& group) {
  MILLRACE_RETURN_IF_ERROR(CheckEnvironment());
  MILLRACE_ASSIGN_OR_RETURN(const ncclUniqueId id, ShareId(group));
  const SteadyTime deadline = SteadyNow() + group.start_timeout;
  auto connected =
      std::unique_ptr<NcclCommunicator>(new NcclCommunicator(group));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t started = ncclCommInitRankConfig(
      &connected->communicator_, group.world, id, group.rank, &config);
  MILLRACE_RETURN_IF_ERROR(connected->Await(started, deadline));
  connected->is_connected_ = true;
  return connected;
}

NcclCommunicator::~NcclCommunicator() { Abort(); }

absl::Status NcclCommunicator::AddUp(float* data, size_t count,
                                     cudaStream_t stream, SteadyTime deadline) {
  return Await(ncclAllReduce(data, data, count, ncclFloat32, ncclSum,
                             communicator_, stream),
               deadline);
}

int NcclCommunicator::AsyncResult() const {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &state);
  return asked == ncclSuccess ? state : asked;
}

absl::Status NcclCommunicator::Await(int result, SteadyTime deadline) {
  PollPause pause;
  while (result == ncclInProgress) {
    MILLRACE_RETURN_IF_ERROR(Check(deadline));
    pause.Wait();
    result = AsyncResult();
  }
  return result == ncclSuccess ? absl::OkStatus() : Fail(result);
}

absl::Status NcclCommunicator::Check(SteadyTime deadline) {
  const int result = AsyncResult();
  if (result != ncclSuccess && result != ncclInProgress) return Fail(result);
  absl::Status status = CheckInterrupted();
  if (status.ok()) status = group_.loss();
  if (status.ok() && SteadyNow() >= deadline) {
    status = absl::DeadlineExceededError(
        StrCat("NCCL did not connect rank ", group_.rank, " to the others of ",
               group_.world, " ranks within ",
               absl::FormatDuration(group_.start_timeout), kNetworkAdvice));
  }
  if (!status.ok()) Abort();
  return status;
}

// Connections break before the silence that shows which rank was lost.
absl::Status NcclCommunicator::Fail(int result) {
  const auto failed = static_cast<ncclResult_t>(result);
  const std::string text = TextOf(failed, communicator_);
  Abort();
  MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
  // All ranks learn of a refusal.
  if (failed == ncclInvalidUsage && !is_connected_) return RefusedGroup(text);
  MILLRACE_RETURN_IF_ERROR(group_.wait_for_loss());
  MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
  return FailureOf(failed, text, group_);
}

// Both calls of NCCL may block, whatever the communicator's configuration.
void NcclCommunicator::Abort() {
  ncclComm* const ending = std::exchange(communicator_, nullptr);
  if (ending == nullptr) return;
  if (!CallInTime(kEndTimeout, [ending] { ncclCommAbort(ending); })) {
    LogWarning("NCCL does not end its work", OverdueFields(group_.rank));
  }
}

void NcclCommunicator::Close() {
  if (communicator_ == nullptr) return;
  const SteadyTime deadline = SteadyNow() + kEndTimeout;
  int result = ncclCommFinalize(communicator_);
  PollPause pause;
  while (result == ncclInProgress && SteadyNow() < deadline && !Interrupted() &&
         group_.loss().ok()) {
    pause.Wait();
    result = AsyncResult();
  }
  if (result != ncclSuccess) return Abort();
  ncclComm* const closed = std::exchange(communicator_, nullptr);
  if (!CallInTime(kEndTimeout, [closed] { ncclCommDestroy(closed); })) {
    LogWarning("NCCL does not let a rank leave the group",
               OverdueFields(group_.rank));
  }
}

}  // namespace millrace::cuda
