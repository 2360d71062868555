// SPDX-License-Identifier: Apache-2.0
// The functions of NCCL that the project uses.
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/ptxemu/nccl/calls.h"
#include "tests/ptxemu/nccl/communicator.h"
#include "tests/ptxemu/nccl/sum.h"

namespace millrace::ncclemu {
namespace {

constexpr unsigned kConfigMagic = 0xcafebeef;  // NCCL_CONFIG_INITIALIZER's
constexpr char kIdPrefix[] = "ncclemu-";
// How long an abort waits for operations, which may be behind other work.
constexpr absl::Duration kAbortTimeout = absl::Seconds(2);

// Calls `body` with the communicator of a handle, unless a result is planned.
template <typename F>
ncclResult_t WithCommunicator(const char* function, ncclComm_t handle, F body) {
  const std::shared_ptr<Communicator> communicator = FindHandle(handle);
  if (communicator == nullptr) {
    return Refuse(ncclInvalidArgument,
                  absl::StrCat(function,
                               ": the communicator does not exist, "
                               "or no longer"));
  }
  const ncclResult_t planned =
      PlannedResultOf(function, communicator->place().rank);
  return planned != ncclSuccess ? planned : body(communicator);
}

// The same with one that is ready.
template <typename F>
ncclResult_t WithReadyCommunicator(const char* function, ncclComm_t handle,
                                   F body) {
  return WithCommunicator(
      function, handle, [&](const std::shared_ptr<Communicator>& communicator) {
        const ncclResult_t ready = CheckReady(*communicator);
        return ready != ncclSuccess ? ready : body(communicator);
      });
}

ncclResult_t CheckPlace(int ranks, const ncclUniqueId& id, int rank,
                        const ncclConfig_t* config) {
  if (IsInGroup()) {
    return Refuse(ncclInvalidUsage,
                  "ncclCommInitRankConfig: not in a group here");
  }
  if (ranks < 1 || ranks > kMaxRanks || rank < 0 || rank >= ranks) {
    return Refuse(
        ncclInvalidArgument,
        absl::StrCat("rank ", rank, " of ", ranks,
                     " ranks; the stand-in takes at most ", kMaxRanks));
  }
  if (config != nullptr && config->magic != kConfigMagic) {
    return Refuse(ncclInvalidArgument,
                  "the ncclConfig_t does not start as "
                  "NCCL_CONFIG_INITIALIZER");
  }
  if (std::strncmp(id.internal, kIdPrefix, std::strlen(kIdPrefix)) != 0 ||
      std::memchr(id.internal, 0, sizeof id.internal) == nullptr) {
    return Refuse(ncclInvalidArgument, "this is no unique id");
  }
  return ncclSuccess;
}

ncclResult_t JoinRanks(ncclComm_t* handle, const Communicator::Place& place) {
  const auto communicator = std::make_shared<Communicator>(place);
  if (!place.is_blocking) {
    *handle = AddHandle(communicator);
    communicator->StartJoining();
    return ncclInProgress;
  }
  communicator->Join();
  if (communicator->state() == ncclSuccess) {
    *handle = AddHandle(communicator);
  } else {
    KeepLastError(communicator->error());
  }
  return communicator->state();
}

ncclResult_t CheckCall(const Communicator& communicator,
                       const Communicator::Call& call) {
  const Description& what = call.description;
  if (communicator.is_finalized()) {
    return Refuse(ncclInvalidUsage, "the communicator is finalized");
  }
  if (SizeOf(what.type) == 0) {
    return Refuse(ncclInvalidArgument,
                  absl::StrCat("type ", static_cast<int>(what.type),
                               " is not known here"));
  }
  if (what.root < 0 || what.root >= communicator.place().ranks) {
    return Refuse(ncclInvalidArgument,
                  absl::StrCat("root ", what.root, " of ",
                               communicator.place().ranks, " ranks"));
  }
  if (what.count > kWindowBytes / SizeOf(what.type)) {
    return Refuse(ncclInvalidUsage,
                  absl::StrCat(ToText(what), " is more than the ", kWindowBytes,
                               " bytes of the stand-in"));
  }
  return ncclSuccess;
}

ncclResult_t Operate(const char* function, ncclComm_t handle,
                     const Communicator::Call& call) {
  const auto submit =
      [&](const std::shared_ptr<Communicator>& communicator) -> ncclResult_t {
    const ncclResult_t checked = CheckCall(*communicator, call);
    if (checked != ncclSuccess || call.description.count == 0) return checked;
    return SubmitOrAdd(communicator, call);
  };
  const ncclResult_t result = WithReadyCommunicator(function, handle, submit);
  return NoteInGroup(result);
}

}  // namespace
}  // namespace millrace::ncclemu

using namespace millrace::ncclemu;  // NOLINT(google-build-using-namespace)
using CommunicatorPtr = std::shared_ptr<Communicator>;

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const ncclResult_t planned = PlannedResultOf(__func__, -1);
  if (planned != ncclSuccess) return planned;
  std::random_device random;
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->internal, sizeof id->internal, "%s%d-%08x%08x", kIdPrefix,
                getpid(), random(), random());
  if (MeetingPlace::Create(id->internal)) return ncclSuccess;
  return Refuse(ncclSystemError,
                absl::StrCat("cannot make the file where ranks meet in ",
                             GetNcclSettings().folder));
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* handle, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  *handle = nullptr;
  const ncclResult_t planned = PlannedResultOf(__func__, rank);
  if (planned != ncclSuccess) return planned;
  const ncclResult_t checked = CheckPlace(ranks, id, rank, config);
  if (checked != ncclSuccess) return checked;
  int device = 0;
  const cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) {
    return Refuse(ncclUnhandledCudaError, cudaGetErrorString(error));
  }
  return JoinRanks(handle,
                   {.id = id.internal,
                    .rank = rank,
                    .ranks = ranks,
                    .device = device,
                    .is_blocking = config == nullptr || config->blocking != 0});
}

ncclResult_t ncclGroupStart() {
  StartGroup();
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() { return EndGroup(); }

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  return WithReadyCommunicator(
      __func__, handle, [](const CommunicatorPtr& communicator) {
        if (communicator->is_finalized()) {
          return Refuse(ncclInvalidArgument,
                        "ncclCommFinalize: it was called before");
        }
        return communicator->Finalize();
      });
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  if (handle == nullptr) return ncclSuccess;
  return WithCommunicator(__func__, handle,
                          [&](const CommunicatorPtr& communicator) {
                            communicator->Drain(absl::InfiniteDuration());
                            communicator->Leave();
                            RemoveHandle(handle);
                            return ncclSuccess;
                          });
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  if (handle == nullptr) return ncclSuccess;
  return WithCommunicator(
      __func__, handle, [&](const CommunicatorPtr& communicator) {
        communicator->Abort();
        communicator->Leave();
        RemoveHandle(handle);
        if (!communicator->Drain(kAbortTimeout)) {
          Say("ncclCommAbort: operations still wait for other work in their "
              "streams");
        }
        return ncclSuccess;
      });
}

// A planned error becomes the communicator's.
ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  const CommunicatorPtr communicator = FindHandle(handle);
  if (communicator != nullptr) {
    const ncclResult_t planned =
        PlannedResultOf(__func__, communicator->place().rank);
    if (planned != ncclSuccess && planned != ncclInProgress) {
      communicator->Fail(planned, LastError());
    }
    *error = planned == ncclInProgress ? planned : communicator->state();
    return ncclSuccess;
  }
  return Refuse(ncclInvalidArgument,
                "ncclCommGetAsyncError: the communicator does not exist, or no "
                "longer");
}

ncclResult_t ncclCommCount(const ncclComm_t handle, int* count) {
  return WithReadyCommunicator(__func__, handle,
                               [&](const CommunicatorPtr& communicator) {
                                 *count = communicator->place().ranks;
                                 return ncclSuccess;
                               });
}

ncclResult_t ncclCommCuDevice(const ncclComm_t handle, int* device) {
  return WithReadyCommunicator(__func__, handle,
                               [&](const CommunicatorPtr& communicator) {
                                 *device = communicator->place().device;
                                 return ncclSuccess;
                               });
}

ncclResult_t ncclCommUserRank(const ncclComm_t handle, int* rank) {
  return WithReadyCommunicator(__func__, handle,
                               [&](const CommunicatorPtr& communicator) {
                                 *rank = communicator->place().rank;
                                 return ncclSuccess;
                               });
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "an error of CUDA";
    case ncclSystemError:
      return "an error of the system";
    case ncclInternalError:
      return "an internal error";
    case ncclInvalidArgument:
      return "an invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "a remote process has ended, or an error of the network";
    case ncclInProgress:
      return "in progress";
    default:
      return "an unknown result";
  }
}

const char* ncclGetLastError(ncclComm_t handle) {
  const CommunicatorPtr communicator = FindHandle(handle);
  const std::string error =
      communicator == nullptr ? "" : communicator->error();
  return KeepLastError(error.empty() ? LastError() : error);
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count,
                           ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t handle, cudaStream_t stream) {
  if (operation != ncclSum) {
    return NoteInGroup(
        Refuse(ncclInvalidArgument, "ncclAllReduce: only sums are known here"));
  }
  return Operate(__func__, handle,
                 {.description = {.kind = OperationKind::kAllReduce,
                                  .type = type,
                                  .root = 0,
                                  .count = count},
                  .send = send,
                  .receive = receive,
                  .stream = stream});
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count,
                           ncclDataType_t type, int root, ncclComm_t handle,
                           cudaStream_t stream) {
  return Operate(__func__, handle,
                 {.description = {.kind = OperationKind::kBroadcast,
                                  .type = type,
                                  .root = root,
                                  .count = count},
                  .send = send,
                  .receive = receive,
                  .stream = stream});
}
