// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/base/thread_pool.h"
#include "server/admission.h"
#include "server/core.h"
#include "server/live_calls.h"

namespace google::protobuf {
class Descriptor;
}  // namespace google::protobuf

namespace millrace {

// The reactor under every call: one request, then an answer of a subclass. To
// gRPC it is a call with streams both ways, since of all others gRPC tells us
// only once the request is there, however long that takes.
//
// A call and its memory count as its client's (see LiveCalls and Admission).
// It counts from the moment it is known: among those whose request is being
// read, which the client has ServerOptions::request_timeout for, and then among
// those of its kind, so that clients that send nothing take no place of those
// that do. All the while it counts among those of its connection, even when its
// client has given it up. The client has ServerOptions::client_timeout to take
// each message.
//
// States: reading -> answering, or refused -> done, when the subclass calls
// Leave() and deletes itself in OnDone(). While it answers, at most one task of
// the call is in a pool; a call that is cancelled, by its client or to make
// room for others, does not wait for its task's turn.
class RequestCall : public ::grpc::ServerGenericBidiReactor {
 public:
  void OnReadDone(bool ok) final;
  void OnCancel() final;

 protected:
  // Where a call counts; both outlive it.
  struct Kind {
    LiveCalls& reading;
    LiveCalls& running;
  };

  // `core` outlives the call.
  RequestCall(ServerCore& core, Kind kind,
              ::grpc::CallbackServerContext* context);

  // Starts the call; to be called once, at the end of the constructor.
  void Begin();

  // The whole request is in message(). Runs on a gRPC thread: must not block.
  virtual void OnRequest() = 0;
  // Ends a call of which no task is in a pool: one that OnRequest() did not get
  // or refuses, or whose task will not run.
  virtual void End(const absl::Status& status) = 0;

  // Has `task` run in `pool`, which must take it; or ends the call, if it is
  // cancelled before the task starts. The call may be gone on return.
  void Submit(ThreadPool& pool, std::function<void()> task);

  // Promises the request its memory, before it is parsed as a `type`. Errors of
  // RequestMemory and of `admission`.
  absl::Status ReserveRequest(Admission& admission,
                              const ::google::protobuf::Descriptor& type);
  // Gives back what was reserved, and then promises memory to the rest of the
  // call, as Admission::Reserve.
  absl::Status ReserveAnew(Admission& admission, uint64_t job, uint64_t bytes);
  Admission::Reservation& memory() { return memory_; }

  // To be called around each write: the client must take it in time.
  void AwaitClient();
  void ClientMoved();

  // To be called in OnDone(), which it may hold up for a moment, when all
  // memory of the call is free again.
  void Leave();

  ServerCore& core() const { return core_; }
  ::grpc::CallbackServerContext& context() const { return *context_; }
  const std::string& client() const { return client_; }
  // The client's deadline, or the one that the server gives it.
  SteadyTime deadline() const { return deadline_; }
  ::grpc::ByteBuffer& message() { return message_; }

 private:
  absl::Status EnterReading();

  ServerCore& core_;
  const Kind kind_;
  ::grpc::CallbackServerContext* const context_;
  const SteadyTime deadline_;
  const std::string client_;  // see ClientName()
  ConnectionCalls::Place place_;
  Admission::Reservation memory_;
  bool entered_ = false;  // those that run
  ::grpc::ByteBuffer message_;

  Mutex task_mutex_;
  bool cancelled_ ABSL_GUARDED_BY(task_mutex_) = false;
  // Where a task of the call waits.
  ThreadPool* queued_in_ ABSL_GUARDED_BY(task_mutex_) = nullptr;
};

}  // namespace millrace
