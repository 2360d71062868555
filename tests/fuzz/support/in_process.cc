// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/support/in_process.h"

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>
#include <utility>

#include "common/base/mutex.h"
#include "common/grpc/status.h"
#include "server/rpc/gather_rpc.h"
#include "server/rpc/sample_rpc.h"
#include "server/rpc/stream_call.h"
#include "tests/fuzz/support/graph.h"

namespace millrace::fuzz {
namespace {

std::string BytesOf(const ::grpc::ByteBuffer& message) {
  std::vector<::grpc::Slice> slices;
  (void)message.Dump(&slices);
  std::string bytes;
  for (const ::grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// Stands in for gRPC: gives a call its request, takes its messages one at a
// time, and ends it. Reactions run on the caller's thread.
class Collector final
    : public ::grpc::ServerCallbackReaderWriter<::grpc::ByteBuffer,
                                                ::grpc::ByteBuffer> {
 public:
  explicit Collector(::grpc::ByteBuffer request)
      : request_(std::move(request)) {}

  StreamedAnswer Run(StreamCall* call) {
    BindReactor(call);
    if (reading_) call->OnReadDone(true);
    while (true) {
      bool wrote = false;
      {
        const auto happened = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          return wrote_ || status_.has_value();
        };
        MutexLock lock(&mutex_);
        happens_.Wait(&mutex_, happened);
        wrote = std::exchange(wrote_, false);
      }
      if (!wrote) break;
      call->OnWriteDone(true);
    }
    call->OnDone();  // deletes it
    MutexLock lock(&mutex_);
    answer_.status = FromGrpcStatus(*status_);
    return std::move(answer_);
  }

 private:
  void Finish(::grpc::Status status) override {
    MutexLock lock(&mutex_);
    status_ = std::move(status);
    happens_.NotifyAll();
  }
  void Write(const ::grpc::ByteBuffer* message, ::grpc::WriteOptions) override {
    MutexLock lock(&mutex_);
    answer_.messages.push_back(BytesOf(*message));
    wrote_ = true;
    happens_.NotifyAll();
  }
  void WriteAndFinish(const ::grpc::ByteBuffer*, ::grpc::WriteOptions,
                      ::grpc::Status) override {}
  void Read(::grpc::ByteBuffer* message) override {
    *message = request_;
    reading_ = true;
  }
  void SendInitialMetadata() override {}
  ::grpc::internal::ServerReactor* reactor() override { return nullptr; }
  void CallOnDone() override {}

  const ::grpc::ByteBuffer request_;
  bool reading_ = false;

  Mutex mutex_;
  CondVar happens_;
  bool wrote_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<::grpc::Status> status_ ABSL_GUARDED_BY(mutex_);
  StreamedAnswer answer_ ABSL_GUARDED_BY(mutex_);
};

StreamedAnswer Answer(const StreamRpc& rpc, std::string_view request) {
  const ::grpc::Slice slice(request.data(), request.size());
  ::grpc::CallbackServerContext context;
  Collector collector(::grpc::ByteBuffer(&slice, 1));
  return collector.Run(new StreamCall(RichServer(), rpc, &context));
}

}  // namespace

ServerCore& RichServer() {
  static auto* const core = [] {
    ServerOptions options;
    options.threads = 1;
    options.max_inflight_bytes = 64 << 20;
    options.max_leaf_bytes = 64 << 20;
    return new ServerCore({.store = RichStore()}, options, nullptr);
  }();
  return *core;
}

StreamedAnswer AnswerSample(std::string_view request) {
  return Answer(SampleRpc(RichServer()), request);
}

StreamedAnswer AnswerGather(std::string_view request) {
  return Answer(GatherRpc(RichServer()), request);
}

}  // namespace millrace::fuzz
