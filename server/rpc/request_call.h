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
#include "server/core/core.h"
#include "server/load/admission.h"
#include "server/load/live_calls.h"

namespace google::protobuf {
class Descriptor;
}  // namespace google::protobuf

namespace millrace {

// The reactor behind every call: reads one request, which a subclass answers.
// Registered as bidirectional streaming: for every other kind gRPC invokes the
// handler only after the whole request has arrived, so a slow sender could not
// be timed out.
//
// A call and its memory are charged to its client (see LiveCalls and
// Admission). While its request is being read, for at most
// ServerOptions::request_timeout, a call counts among the reading calls, and
// then among those of its kind, so that clients that send nothing take no
// places from clients that do. Throughout, it also counts among the calls of
// its connection, even after its client has given it up. The client has
// ServerOptions::client_timeout to accept each message.
//
// States: reading -> answering, or refused -> done; the subclass then calls
// Leave() and deletes itself in OnDone(). While answering, a call has at most
// one task in a pool; a call cancelled by its client, or to make room for
// others, does not wait for the task's turn.
class RequestCall : public ::grpc::ServerGenericBidiReactor {
 public:
  void OnReadDone(bool ok) final;
  void OnCancel() final;

 protected:
  // The limits that a call counts towards; both outlive the call.
  struct Kind {
    LiveCalls& reading;
    LiveCalls& running;
  };

  // `core` must outlive the call.
  RequestCall(ServerCore& core, Kind kind,
              ::grpc::CallbackServerContext* context);

  // Starts the call; call once, at the end of the constructor.
  void Begin();

  // Called when message() holds the whole request. Runs on a gRPC thread and
  // must not block.
  virtual void OnRequest() = 0;
  // Ends a call that has no task in a pool: because OnRequest() was not reached
  // or refuses the request, or because the task will not run.
  virtual void End(const absl::Status& status) = 0;

  // Runs `task` on `pool`, which must have room for it, or ends the call if it
  // is cancelled before the task starts. The call may be gone on return.
  void Submit(ThreadPool& pool, std::function<void()> task);

  // Reserves memory for the request before it is parsed as a `type`. Errors of
  // RequestMemory and of `admission`.
  absl::Status ReserveRequest(Admission& admission,
                              const ::google::protobuf::Descriptor& type);
  // Returns the current reservation and then reserves memory for the rest of
  // the call, as Admission::Reserve.
  absl::Status ReserveAnew(Admission& admission, uint64_t job, uint64_t bytes);
  Admission::Reservation& memory() { return memory_; }

  // Call before and after each write: the client must accept it in time.
  void AwaitClient();
  void ClientMoved();

  // Call in OnDone() once all memory of the call is freed. May block for a
  // moment.
  void Leave();

  ServerCore& core() const { return core_; }
  ::grpc::CallbackServerContext& context() const { return *context_; }
  const std::string& client() const { return client_; }
  // The client's deadline, or the one that the server assigns.
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
  bool entered_ = false;  // counts among the running calls
  ::grpc::ByteBuffer message_;

  Mutex task_mutex_;
  bool cancelled_ ABSL_GUARDED_BY(task_mutex_) = false;
  // The pool in which a task of the call waits.
  ThreadPool* queued_in_ ABSL_GUARDED_BY(task_mutex_) = nullptr;
};

}  // namespace millrace
