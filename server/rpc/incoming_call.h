// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/base/steady_time.h"
#include "server/core/call_trace.h"
#include "server/core/core.h"
#include "server/load/active_calls.h"
#include "server/load/admission.h"

namespace google::protobuf {
class Descriptor;
}  // namespace google::protobuf

namespace millrace {

// A client's call as the server's limits see it: its places among the running
// calls, the memory reserved for it, and how long it may take. Its owner, a
// StreamCall or ReplyCall, produces the answer.
//
// A call and its memory are charged to its client (see ActiveCalls and
// Admission). While its request is being read, for at most
// ServerOptions::request_timeout, a call counts among the reading calls, and
// then among those of its kind, so that clients that send nothing take no
// places from clients that do. Throughout, it also counts among the calls of
// its connection, even after its client has given up on it. The client has
// ServerOptions::client_timeout to accept each message.
//
// States: new -> reading -> running -> left; a call may leave in any state.
// Not thread-safe, except that AwaitClient() and ClientMadeProgress() may be
// called by the thread that writes.
class IncomingCall {
 public:
  // The limits that a call counts towards; both outlive the call.
  struct Limits {
    ActiveCalls& reading;
    ActiveCalls& running;
  };

  // `method` is the RPC, such as "Expand"; a string literal. `core` and
  // `context` must outlive the call.
  IncomingCall(ServerCore& core, const char* method, Limits limits,
               ::grpc::CallbackServerContext* context);
  IncomingCall(const IncomingCall&) = delete;
  IncomingCall& operator=(const IncomingCall&) = delete;

  // Call before the request is read. Fails like ConnectionCalls::Enter and
  // ActiveCalls::Enter.
  absl::Status StartReading();
  // Call when the request has been read; `ok` means that message() holds all of
  // it. CANCELLED, INVALID_ARGUMENT: it did not arrive. Also the errors of
  // ActiveCalls::Enter().
  absl::Status FinishReading(bool ok);

  // Reserves memory for the request before it is parsed as a `type`. Fails like
  // RequestMemory() and the functions of `admission`.
  absl::Status ReserveRequest(Admission& admission,
                              const ::google::protobuf::Descriptor& type);
  // Gives back the current reservation and then reserves memory for the rest of
  // the call, like Admission::Reserve().
  absl::Status ReplaceReservation(Admission& admission, uint64_t job,
                                  uint64_t bytes);
  Admission::Reservation& memory() { return memory_; }

  // Call before and after each write: the client must accept it in time.
  void AwaitClient();
  void ClientMadeProgress();

  // Counts `bytes` of the answer, which have been made.
  void CountSent(uint64_t bytes) { core_.metrics.AddSent(method_, bytes); }
  // Call before the status is sent, unless that is done with the last message.
  void StartFinishing();

  // Call last, once all memory of the call is freed. Counts the call, which
  // ended with `status`, in the server's metrics. May block for a moment.
  void Leave(const absl::Status& status);

  ServerCore& core() const { return core_; }
  ::grpc::CallbackServerContext& context() const { return *context_; }
  const std::string& client() const { return client_; }  // see ClientName()
  // The client's deadline, or the one that the server assigns.
  SteadyTime deadline() const { return deadline_; }
  // The request as it was received.
  ::grpc::ByteBuffer& message() { return message_; }
  // See common/grpc/request_id.h.
  const std::string& request_id() const { return request_id_; }
  CallTrace* trace() { return trace_.get(); }  // null without --trace-slow

 private:
  // Tells the trace, and the log with --log-level debug, how the call ended.
  void NoteStatus(const absl::Status& status);

  ServerCore& core_;
  const char* const method_;
  const Limits limits_;
  ::grpc::CallbackServerContext* const context_;
  const SteadyTime arrival_;
  const SteadyTime deadline_;
  const std::string client_;
  const std::string request_id_;
  const std::unique_ptr<CallTrace> trace_;
  ConnectionCalls::Place place_;
  Admission::Reservation memory_;
  bool running_ = false;  // counts among the running calls
  ::grpc::ByteBuffer message_;
};

}  // namespace millrace
