// SPDX-License-Identifier: Apache-2.0
// A server in front of a real one, which misbehaves as a test tells it to.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/grpc/channel_args.h"
#include "sampler.grpc.pb.h"

namespace millrace::testing {

// Forwards all calls to a real server, except Sample, which a script answers,
// and Describe and Expand if a test wants that.
// Threads: any; the script runs on several at once, until the destructor
// returns.
class ScriptedSampler final : public v1::Sampler::Service {
 public:
  using Writer = ::grpc::ServerWriter<v1::Frame>;
  // Answers call `number` of Sample, counted from 0.
  using Script = std::function<::grpc::Status(
      int number, const v1::SampleRequest& request, Writer& writer)>;

  ScriptedSampler(std::unique_ptr<v1::Sampler::Stub> behind, Script script)
      : behind_(std::move(behind)), script_(std::move(script)) {
    ::grpc::ServerBuilder builder;
    ConfigureServer(builder);
    builder.AddListeningPort("127.0.0.1:0", ::grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  int calls() const {
    MutexLock lock(&mutex_);
    return calls_;
  }

  // From now on, Describe runs `act` first, and fails if `act` fails.
  void OnDescribe(std::function<::grpc::Status()> act) {
    MutexLock lock(&mutex_);
    on_describe_ = std::move(act);
  }
  // From now on, `edit` changes the replies of Describe.
  void EditDescribe(std::function<void(v1::DescribeReply&)> edit) {
    MutexLock lock(&mutex_);
    edit_describe_ = std::move(edit);
  }
  // From now on, Expand runs `act` first, and fails if `act` fails.
  void OnExpand(std::function<::grpc::Status()> act) {
    MutexLock lock(&mutex_);
    on_expand_ = std::move(act);
  }
  // From now on, `edit` changes the replies of Expand.
  void EditExpand(std::function<void(v1::ExpandReply&)> edit) {
    MutexLock lock(&mutex_);
    edit_expand_ = std::move(edit);
  }
  // From now on, `edit` changes the replies of Resolve.
  void EditResolve(std::function<void(v1::ResolveReply&)> edit) {
    MutexLock lock(&mutex_);
    edit_resolve_ = std::move(edit);
  }
  int expands() const {
    MutexLock lock(&mutex_);
    return expands_;
  }
  // The deadline of the last Expand call.
  std::chrono::system_clock::time_point expand_deadline() const {
    MutexLock lock(&mutex_);
    return expand_deadline_;
  }
  int describes() const {
    MutexLock lock(&mutex_);
    return describes_;
  }
  // Number of connections that made Sample calls.
  size_t connections() const {
    MutexLock lock(&mutex_);
    return peers_.size();
  }

  // Forwards one Sample call; `edit` changes frames before they are sent.
  ::grpc::Status Pass(const v1::SampleRequest& request, Writer& writer,
                      const std::function<void(v1::Frame&)>& edit = {}) {
    ::grpc::ClientContext context;
    return Copy(*behind_->Sample(&context, request), writer, edit);
  }

  ::grpc::Status Sample(::grpc::ServerContext* context,
                        const v1::SampleRequest* request,
                        Writer* writer) override {
    int number = 0;
    {
      MutexLock lock(&mutex_);
      number = calls_++;
      peers_.insert(context->peer());
    }
    return script_(number, *request, *writer);
  }
  ::grpc::Status Gather(::grpc::ServerContext*,
                        const v1::GatherRequest* request,
                        Writer* writer) override {
    ::grpc::ClientContext context;
    return Copy(*behind_->Gather(&context, *request), *writer, {});
  }
  ::grpc::Status Expand(::grpc::ServerContext* context,
                        const v1::ExpandRequest* request,
                        v1::ExpandReply* reply) override {
    std::function<::grpc::Status()> act;
    std::function<void(v1::ExpandReply&)> edit;
    {
      MutexLock lock(&mutex_);
      ++expands_;
      expand_deadline_ = context->deadline();
      act = on_expand_;
      edit = edit_expand_;
    }
    if (act) {
      if (::grpc::Status status = act(); !status.ok()) return status;
    }
    ::grpc::ClientContext call;
    ::grpc::Status status = behind_->Expand(&call, *request, reply);
    if (status.ok() && edit) edit(*reply);
    return status;
  }
  ::grpc::Status Resolve(::grpc::ServerContext*,
                         const v1::ResolveRequest* request,
                         v1::ResolveReply* reply) override {
    std::function<void(v1::ResolveReply&)> edit;
    {
      MutexLock lock(&mutex_);
      edit = edit_resolve_;
    }
    ::grpc::ClientContext context;
    ::grpc::Status status = behind_->Resolve(&context, *request, reply);
    if (status.ok() && edit) edit(*reply);
    return status;
  }
  ::grpc::Status HasEdges(::grpc::ServerContext*,
                          const v1::HasEdgesRequest* request,
                          v1::HasEdgesReply* reply) override {
    ::grpc::ClientContext context;
    return behind_->HasEdges(&context, *request, reply);
  }
  ::grpc::Status Describe(::grpc::ServerContext*,
                          const v1::DescribeRequest* request,
                          v1::DescribeReply* reply) override {
    std::function<::grpc::Status()> act;
    std::function<void(v1::DescribeReply&)> edit;
    {
      MutexLock lock(&mutex_);
      ++describes_;
      act = on_describe_;
      edit = edit_describe_;
    }
    if (act) {
      if (::grpc::Status status = act(); !status.ok()) return status;
    }
    ::grpc::ClientContext context;
    ::grpc::Status status = behind_->Describe(&context, *request, reply);
    if (status.ok() && edit) edit(*reply);
    return status;
  }

 private:
  static ::grpc::Status Copy(::grpc::ClientReader<v1::Frame>& reader,
                             Writer& writer,
                             const std::function<void(v1::Frame&)>& edit) {
    v1::Frame frame;
    while (reader.Read(&frame)) {
      if (edit) edit(frame);
      writer.Write(frame);
    }
    return reader.Finish();
  }

  const std::unique_ptr<v1::Sampler::Stub> behind_;
  const Script script_;
  int port_ = 0;
  mutable Mutex mutex_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int describes_ ABSL_GUARDED_BY(mutex_) = 0;
  int expands_ ABSL_GUARDED_BY(mutex_) = 0;
  std::chrono::system_clock::time_point expand_deadline_
      ABSL_GUARDED_BY(mutex_);
  std::function<::grpc::Status()> on_describe_ ABSL_GUARDED_BY(mutex_);
  std::function<::grpc::Status()> on_expand_ ABSL_GUARDED_BY(mutex_);
  std::function<void(v1::ExpandReply&)> edit_expand_ ABSL_GUARDED_BY(mutex_);
  std::function<void(v1::ResolveReply&)> edit_resolve_ ABSL_GUARDED_BY(mutex_);
  std::function<void(v1::DescribeReply&)> edit_describe_
      ABSL_GUARDED_BY(mutex_);
  std::set<std::string> peers_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<::grpc::Server> server_;  // last: calls all of the above
};

}  // namespace millrace::testing
