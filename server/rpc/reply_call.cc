// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/reply_call.h"

#include <utility>

#include "common/base/log.h"
#include "common/base/steady_time.h"
#include "common/grpc/status.h"

namespace millrace {

ReplyCall::ReplyCall(ServerCore& core, const ReplyRpc& rpc,
                     ::grpc::CallbackServerContext* context)
    : call_(core, rpc.name, rpc.limits, context),
      maker_(rpc.make(call_)),
      task_(call_.client()) {
  const absl::Status status = call_.StartReading();
  if (status.ok()) {
    StartRead(&call_.message());
  } else {
    End(status);
  }
}

void ReplyCall::OnReadDone(bool ok) {
  const absl::Status status = call_.FinishReading(ok);
  if (!status.ok()) return End(status);
  const absl::StatusOr<ThreadPool*> pool = maker_->Prepare();
  if (!pool.ok()) return End(pool.status());
  if (*pool == nullptr) return MakeReply();
  // Once a task has been submitted, the call may be gone.
  const absl::Status refused = task_.Submit(**pool, [this] { MakeReply(); });
  if (!refused.ok()) End(refused);
}

void ReplyCall::MakeReply() {
  absl::StatusOr<::grpc::ByteBuffer> reply = TimedReply();
  const absl::Status status = reply.status();
  if (reply.ok()) {
    reply_ = *std::move(reply);
    call_.CountSent(reply_.Length());
  }
  End(status);
}

absl::StatusOr<::grpc::ByteBuffer> ReplyCall::TimedReply() {
  const LogRequest logged(call_.request_id());
  CallTrace* const trace = call_.trace();
  if (trace == nullptr) return maker_->Make();
  const SteadyTime begin = SteadyNow();
  absl::StatusOr<::grpc::ByteBuffer> reply = maker_->Make();
  trace->NoteWork(begin, SteadyNow(), reply.ok() ? reply->Length() : 0);
  return reply;
}

void ReplyCall::OnCancel() {
  const absl::Status removed = task_.Cancel();
  if (!removed.ok()) End(removed);
}

// Ends a call that has no task and will not get one; sends the reply if
// `status` is OK.
void ReplyCall::End(const absl::Status& status) {
  if (!status.ok()) {
    status_ = call_.core().ErrorForClient(status);
    call_.StartFinishing();
    return Finish(ToGrpcStatus(status_));
  }
  call_.AwaitClient();
  StartWriteAndFinish(&reply_, ::grpc::WriteOptions(), ::grpc::Status::OK);
}

void ReplyCall::OnDone() {
  // Freed here, because a slow reader may make a reply last until the end.
  reply_.Clear();
  maker_.reset();
  call_.Leave(status_);
  delete this;
}

}  // namespace millrace
