// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/stream_call.h"

#include <utility>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/grpc/status.h"
#include "server/core/call_scope.h"

namespace millrace {

StreamCall::StreamCall(ServerCore& core, const StreamRpc& rpc,
                       ::grpc::CallbackServerContext* context)
    : call_(core, rpc.name, {core.reading_calls, rpc.running}, context),
      maker_(rpc.make(call_)),
      task_(call_.client()) {
  const absl::Status status = call_.StartReading();
  if (status.ok()) {
    StartRead(&call_.message());
  } else {
    End(status);
  }
}

void StreamCall::OnReadDone(bool ok) {
  const absl::Status status = call_.FinishReading(ok);
  if (!status.ok()) return End(status);
  const absl::StatusOr<ThreadPool*> pool = maker_->Prepare();
  if (!pool.ok()) return End(pool.status());
  SubmitMaking(**pool);
}

// The call may be gone on return.
void StreamCall::SubmitMaking(ThreadPool& pool) {
  const absl::Status refused = task_.Submit(pool, [this] { MakeFrames(); });
  if (!refused.ok()) End(refused);
}

void StreamCall::MakeFrames() {
  for (bool more = true; more;) {
    FrameQueue::Actions actions = queue_.Add(MakeFrame());
    more = actions.make;
    // Unless there is more to make, the thread that ends the last write
    // finishes and deletes the call: here if there is nothing to send,
    // otherwise after Send().
    if (actions.write.has_value() || actions.finish) Send(actions);
  }
}

absl::StatusOr<std::optional<::grpc::ByteBuffer>> StreamCall::MakeFrame() {
  ServerCore& core = call_.core();
  MILLRACE_RETURN_IF_ERROR(CheckNotCancelled(call_.context()));
  const LogRequest logged(call_.request_id());
  absl::StatusOr<std::optional<::grpc::ByteBuffer>> frame = NextFrame();
  if (!frame.ok()) return core.ErrorForClient(frame.status());
  if (frame->has_value()) call_.CountSent((*frame)->Length());
  return frame;
}

absl::StatusOr<std::optional<::grpc::ByteBuffer>> StreamCall::NextFrame() {
  CallTrace* const trace = call_.trace();
  if (trace == nullptr) return maker_->Next();
  const SteadyTime begin = SteadyNow();
  absl::StatusOr<std::optional<::grpc::ByteBuffer>> frame = maker_->Next();
  trace->NoteWork(begin, SteadyNow(),
                  frame.ok() && frame->has_value() ? (*frame)->Length() : 0);
  return frame;
}

void StreamCall::OnWriteDone(bool ok) {
  call_.ClientMadeProgress();
  frame_.Clear();
  FrameQueue::Actions actions = queue_.OnWritten(ok);
  const bool make = actions.make;
  Send(actions);
  // The later frames of every method only read what is on this server.
  if (make) {
    if (call_.trace() != nullptr) call_.trace()->NoteLeafTask(SteadyNow());
    SubmitMaking(call_.core().leaf_pool);
  }
}

void StreamCall::OnCancel() {
  const absl::Status removed = task_.Cancel();
  if (!removed.ok()) End(removed);
}

// Ends a call that has no task and will not get one.
void StreamCall::End(const absl::Status& status) {
  FrameQueue::Actions actions = queue_.End(status);
  Send(actions);
}

// Once a write has been started, another thread may finish and delete the call,
// unless `actions` also say to make frames.
void StreamCall::Send(FrameQueue::Actions& actions) {
  if (actions.write.has_value()) {
    frame_ = *std::move(actions.write);
    call_.AwaitClient();
    StartWrite(&frame_);
  }
  if (actions.finish) {
    call_.StartFinishing();
    Finish(ToGrpcStatus(queue_.status()));
  }
}

void StreamCall::OnDone() {
  maker_.reset();
  call_.Leave(queue_.status());
  delete this;
}

}  // namespace millrace
