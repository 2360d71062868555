// SPDX-License-Identifier: Apache-2.0
#include "client/remote/frame_stream.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/grpc/call/unary_call.h"
#include "common/wire/frame.h"
#include "tests/support/scripted_sampler.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ScriptedSampler;
using StreamWriter = ScriptedSampler::Writer;

constexpr int64_t kMebibyte = 1 << 20;

// Accepts frames and their ends, and notes what the member's outstanding bytes
// are whenever a message comes.
class StreamWatcher final : public FrameReceiver, public CallObserver {
 public:
  explicit StreamWatcher(std::shared_ptr<FleetMember> member)
      : member_(std::move(member)) {}

  absl::Status OnMessage() override {
    outstanding_.push_back(member_->outstanding_bytes);
    return accepts_;
  }
  absl::Status OnFrame(const ReceivedFrame& frame) override {
    received_ += frame.payload_bytes();
    return verdict_;
  }
  absl::Status CheckComplete() const override { return absl::OkStatus(); }
  void OnEnd(absl::Status status) override {
    at_end_ = member_->outstanding_bytes;
    status_ = std::move(status);
    end_.Notify();
  }

  // Call this before Start(). It sets what is done with messages and with
  // frames.
  void Answer(absl::Status message, absl::Status frame) {
    accepts_ = std::move(message);
    verdict_ = std::move(frame);
  }
  // Call these only after the stream has ended.
  const absl::Status& AwaitEnd() const {
    end_.WaitForNotification();
    return status_;
  }
  const std::vector<int64_t>& outstanding() const { return outstanding_; }
  int64_t at_end() const { return at_end_; }
  size_t received() const { return received_; }

 private:
  const std::shared_ptr<FleetMember> member_;  // shared with the call
  absl::Status accepts_, verdict_;
  std::vector<int64_t> outstanding_;
  size_t received_ = 0;
  int64_t at_end_ = -1;
  absl::Status status_;
  Notification end_;
};

// Sends a frame of so many bytes; the first one promises `total` bytes.
void SendFrame(StreamWriter& out, size_t bytes, uint64_t total = 0) {
  FrameHeader header;
  if (total > 0) header.stream.emplace().total_bytes = total;
  v1::Frame frame;
  ASSERT_TRUE(frame.ParseFromString(EncodeFrameHead(header, bytes) +
                                    std::string(bytes, 'x')));
  out.Write(frame);
}

class FrameStreamTest : public ::testing::Test {
 protected:
  // Starts a stream that the script answers.
  void Start(std::function<grpc::Status(StreamWriter&)> script,
             absl::Duration timeout = absl::Minutes(1)) {
    server_ = std::make_unique<ScriptedSampler>(
        nullptr, [script = std::move(script)](int, const v1::SampleRequest&,
                                              StreamWriter& out) {
          return script(out);
        });
    member_->address = server_->address();
    member_->channels.Open(1, [this] {
      return grpc::CreateChannel(server_->address(),
                                 grpc::InsecureChannelCredentials());
    });
    call_ = StartFrameStream({.method = "/millrace.v1.Sampler/Sample",
                              .request = SerializeMessage(v1::SampleRequest()),
                              .member = member_,
                              .deadline = SteadyNow() + timeout,
                              .receiver = watcher_,
                              .observer = watcher_});
  }

  // Starts a stream of two frames of a hundred bytes in all.
  void StartTwoFrames() {
    Start([](StreamWriter& out) {
      SendFrame(out, 60, /*total=*/100);
      SendFrame(out, 40);
      return grpc::Status::OK;
    });
  }

  const std::shared_ptr<FleetMember> member_ = std::make_shared<FleetMember>();
  const std::shared_ptr<StreamWatcher> watcher_ =
      std::make_shared<StreamWatcher>(member_);
  std::unique_ptr<ScriptedSampler> server_;
  std::shared_ptr<Call> call_;
};

// One mebibyte is added to the remaining bytes. A stream whose size is unknown
// counts for just that mebibyte.
TEST_F(FrameStreamTest, CountsForTheBytesThatAreStillToCome) {
  Notification release;
  Start([&release](StreamWriter& out) {
    release.WaitForNotification();
    SendFrame(out, 60, /*total=*/100);
    SendFrame(out, 30);
    SendFrame(out, 10);
    SendFrame(out, 5);  // more than promised, which this receiver accepts
    SendFrame(out, 0);
    return grpc::Status::OK;
  });
  EXPECT_EQ(member_->outstanding_bytes, kMebibyte);
  release.Notify();
  EXPECT_EQ(watcher_->AwaitEnd(), absl::OkStatus());
  server_.reset();
  EXPECT_THAT(watcher_->outstanding(),
              ElementsAre(kMebibyte, kMebibyte + 40, kMebibyte + 10, kMebibyte,
                          kMebibyte));
  EXPECT_EQ(watcher_->at_end(), 0);
  EXPECT_EQ(watcher_->received(), 105u);
}

TEST_F(FrameStreamTest, PassesOnHowTheServerEndsIt) {
  Start([](StreamWriter& out) {
    SendFrame(out, 60, /*total=*/100);
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "going down");
  });
  EXPECT_EQ(watcher_->AwaitEnd(), absl::UnavailableError("going down"));
  EXPECT_EQ(watcher_->received(), 60u);
  EXPECT_EQ(watcher_->at_end(), 0);
}

TEST_F(FrameStreamTest, WrongFramesAreTheServersFault) {
  watcher_->Answer(absl::OkStatus(), absl::InvalidArgumentError("no good"));
  StartTwoFrames();
  const absl::Status status = watcher_->AwaitEnd();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("server " + server_->address() +
                        " breaks the protocol: no good"));
  EXPECT_EQ(watcher_->received(), 60u);
  EXPECT_EQ(watcher_->at_end(), 0);
}

TEST_F(FrameStreamTest, MessagesThatAreNoFramesAreTheServersFault) {
  Start([](StreamWriter& out) {
    v1::Frame frame;
    frame.mutable_header();
    // A second header.
    frame.GetReflection()->MutableUnknownFields(&frame)->AddLengthDelimited(
        v1::Frame::kHeaderFieldNumber, "");
    out.Write(frame);
    return grpc::Status::OK;
  });
  const absl::Status status = watcher_->AwaitEnd();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("server " + server_->address() + " breaks the protocol: "));
  EXPECT_THAT(watcher_->outstanding(), ElementsAre());
  EXPECT_EQ(watcher_->received(), 0u);
}

TEST_F(FrameStreamTest, KeepsOtherErrorsOfItsReceiver) {
  const absl::Status lost = absl::UnavailableError("another owner is lost");
  watcher_->Answer(absl::OkStatus(), lost);
  StartTwoFrames();
  EXPECT_EQ(watcher_->AwaitEnd(), lost);
  EXPECT_EQ(watcher_->received(), 60u);
}

TEST_F(FrameStreamTest, ReceiverGetsOnlyMessagesThatTheObserverAccepts) {
  const absl::Status late = absl::CancelledError("another one was faster");
  watcher_->Answer(late, absl::OkStatus());
  StartTwoFrames();
  EXPECT_EQ(watcher_->AwaitEnd(), late);
  EXPECT_EQ(watcher_->received(), 0u);
}

TEST_F(FrameStreamTest, EndsAtItsDeadline) {
  Notification release;
  Start(
      [&release](StreamWriter&) {
        release.WaitForNotification();
        return grpc::Status::OK;
      },
      absl::Milliseconds(50));
  EXPECT_TRUE(absl::IsDeadlineExceeded(watcher_->AwaitEnd()))
      << watcher_->AwaitEnd();
  EXPECT_EQ(watcher_->at_end(), 0);
  release.Notify();
  server_.reset();
}

TEST_F(FrameStreamTest, EndsWhenItIsCancelled) {
  Notification release;
  Start([&release](StreamWriter&) {
    release.WaitForNotification();
    return grpc::Status::OK;
  });
  call_->Cancel();
  EXPECT_TRUE(absl::IsCancelled(watcher_->AwaitEnd())) << watcher_->AwaitEnd();
  EXPECT_EQ(watcher_->at_end(), 0);
  release.Notify();
  server_.reset();
}

}  // namespace
}  // namespace millrace
