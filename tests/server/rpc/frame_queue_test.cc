// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/frame_queue.h"

#include <grpcpp/support/slice.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/mutex.h"

namespace millrace {
namespace {

using Actions = FrameQueue::Actions;
using Frame = std::optional<::grpc::ByteBuffer>;

Frame FrameOf(int number) {
  const ::grpc::Slice slice(std::to_string(number));
  return ::grpc::ByteBuffer(&slice, 1);
}

int NumberOf(const Frame& frame) {
  ::grpc::Slice slice;
  EXPECT_TRUE(frame->TrySingleSlice(&slice).ok());
  return std::stoi(
      std::string(reinterpret_cast<const char*>(slice.begin()), slice.size()));
}

// The actions as text, such as "write 3, make".
std::string TextOf(const Actions& actions) {
  std::string text;
  const auto add = [&text](const std::string& action) {
    text += (text.empty() ? "" : ", ") + action;
  };
  if (actions.write.has_value()) {
    add("write " + std::to_string(NumberOf(actions.write)));
  }
  if (actions.make) add("make");
  if (actions.finish) add("finish");
  return text;
}

// Calls the queue as StreamCall does, and returns the resulting actions as
// text.
class FrameQueueTest : public ::testing::Test {
 protected:
  std::string Add(int number) { return TextOf(queue_.Add(FrameOf(number))); }
  std::string AddEnd() { return TextOf(queue_.Add(Frame())); }
  std::string AddError(const absl::Status& error) {
    return TextOf(queue_.Add(error));
  }
  std::string OnWritten(bool ok = true) { return TextOf(queue_.OnWritten(ok)); }
  std::string End(const absl::Status& status) {
    return TextOf(queue_.End(status));
  }

  // One frame is being written and four wait, so that the task has stopped.
  void Fill() {
    EXPECT_EQ(Add(0), "write 0, make");
    for (int i = 1; i < 4; ++i) EXPECT_EQ(Add(i), "make");
    EXPECT_EQ(Add(4), "");
  }

  const absl::Status error_ = absl::DataLossError("torn");
  FrameQueue queue_;
};

TEST_F(FrameQueueTest, WritesFramesInOrderAndFinishesAfterTheLast) {
  EXPECT_EQ(Add(0), "write 0, make");
  EXPECT_EQ(Add(1), "make");
  EXPECT_EQ(AddEnd(), "");
  EXPECT_EQ(OnWritten(), "write 1");
  EXPECT_EQ(OnWritten(), "finish");
  EXPECT_TRUE(queue_.status().ok());
}

TEST_F(FrameQueueTest, FinishesAStreamWithoutFrames) {
  EXPECT_EQ(AddEnd(), "finish");
  EXPECT_TRUE(queue_.status().ok());
}

TEST_F(FrameQueueTest, FinishesAtTheEndIfAllWasWrittenBefore) {
  EXPECT_EQ(Add(0), "write 0, make");
  EXPECT_EQ(OnWritten(), "");
  EXPECT_EQ(AddEnd(), "finish");
}

TEST_F(FrameQueueTest, MakesFramesAgainOnceTwoAreLeft) {
  Fill();
  EXPECT_EQ(OnWritten(), "write 1");
  EXPECT_EQ(OnWritten(), "write 2, make");
  // While that task runs, no other is started.
  EXPECT_EQ(OnWritten(), "write 3");
  EXPECT_EQ(Add(5), "make");
}

TEST_F(FrameQueueTest, DropsWaitingFramesAfterAnError) {
  EXPECT_EQ(Add(0), "write 0, make");
  EXPECT_EQ(Add(1), "make");
  EXPECT_EQ(AddError(error_), "");
  EXPECT_EQ(OnWritten(), "finish");
  EXPECT_EQ(queue_.status(), error_);
}

TEST_F(FrameQueueTest, FinishesAtOnceAfterAnErrorBetweenWrites) {
  EXPECT_EQ(AddError(error_), "finish");
  EXPECT_EQ(queue_.status(), error_);
}

TEST_F(FrameQueueTest, DropsWaitingFramesOfAClientThatIsGone) {
  Fill();
  EXPECT_EQ(OnWritten(false), "finish");
  EXPECT_TRUE(absl::IsCancelled(queue_.status())) << queue_.status();
}

TEST_F(FrameQueueTest, WaitsForTheTaskOfAClientThatIsGone) {
  EXPECT_EQ(Add(0), "write 0, make");
  EXPECT_EQ(OnWritten(false), "");
  EXPECT_EQ(Add(1), "finish");
  EXPECT_TRUE(absl::IsCancelled(queue_.status())) << queue_.status();
}

TEST_F(FrameQueueTest, KeepsTheFirstOfTwoErrors) {
  EXPECT_EQ(Add(0), "write 0, make");
  EXPECT_EQ(AddError(error_), "");
  EXPECT_EQ(OnWritten(false), "finish");
  EXPECT_EQ(queue_.status(), error_);
}

TEST_F(FrameQueueTest, IsCancelledIfTheClientDoesNotGetTheLastFrame) {
  EXPECT_EQ(Add(0), "write 0, make");
  EXPECT_EQ(Add(1), "make");
  EXPECT_EQ(AddEnd(), "");
  EXPECT_EQ(OnWritten(false), "finish");
  EXPECT_TRUE(absl::IsCancelled(queue_.status())) << queue_.status();
}

TEST_F(FrameQueueTest, EndsACallRefusedBeforeItsTaskStarts) {
  EXPECT_EQ(End(error_), "finish");
  EXPECT_EQ(queue_.status(), error_);
}

TEST_F(FrameQueueTest, EndsACallWhoseTaskIsRemoved) {
  Fill();
  EXPECT_EQ(OnWritten(), "write 1");
  EXPECT_EQ(OnWritten(), "write 2, make");
  EXPECT_EQ(End(error_), "");
  EXPECT_EQ(OnWritten(), "finish");
  EXPECT_EQ(queue_.status(), error_);
}

TEST_F(FrameQueueTest, AsksForNothingOnceFinished) {
  EXPECT_EQ(AddEnd(), "finish");
  EXPECT_EQ(End(error_), "");
  EXPECT_TRUE(queue_.status().ok());
}

// Plays StreamCall with a thread for the task and one for gRPC.
class TwoThreads {
 public:
  // Makes `frames` frames. Returns those that were written, in order.
  std::vector<int> Run(int frames, int lost_at) {
    std::thread writer([this, lost_at] { Write(lost_at); });
    std::thread maker([this, frames] { Make(frames); });
    maker.join();
    writer.join();
    return written_;
  }
  const FrameQueue& queue() const { return queue_; }
  int finished() {
    MutexLock lock(&mutex_);
    return finished_;
  }

 private:
  void Make(int frames) {
    for (int made = 0; AwaitTask();) {
      for (bool more = true; more;) {
        Actions actions = queue_.Add(made < frames ? FrameOf(made) : Frame());
        ++made;
        more = std::exchange(actions.make, false);
        Do(actions);
      }
    }
  }

  void Write(int lost_at) {
    while (true) {
      Frame frame;
      {
        MutexLock lock(&mutex_);
        changed_.Wait(&mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          return writing_.has_value() || finished_ > 0;
        });
        if (!writing_.has_value()) return;
        frame = std::exchange(writing_, std::nullopt);
      }
      written_.push_back(NumberOf(frame));
      Actions actions = queue_.OnWritten(written_.back() != lost_at);
      Do(actions);
    }
  }

  void Do(Actions& actions) {
    MutexLock lock(&mutex_);
    if (actions.write.has_value()) {
      EXPECT_FALSE(writing_.has_value());
      writing_ = std::move(actions.write);
    }
    task_ |= actions.make;
    finished_ += actions.finish ? 1 : 0;
    changed_.NotifyAll();
  }

  bool AwaitTask() {
    MutexLock lock(&mutex_);
    changed_.Wait(&mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return task_ || finished_ > 0;
    });
    return std::exchange(task_, false);
  }

  FrameQueue queue_;
  std::vector<int> written_;  // used by the writer, then by the caller of Run()

  Mutex mutex_;
  CondVar changed_;
  Frame writing_ ABSL_GUARDED_BY(mutex_);
  bool task_ ABSL_GUARDED_BY(mutex_) = true;
  int finished_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(FrameQueueThreadsTest, WriteEachFrameOnceAndInOrder) {
  TwoThreads threads;
  const std::vector<int> written = threads.Run(500, /*lost_at=*/-1);
  ASSERT_EQ(written.size(), 500u);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(written[i], i);
  EXPECT_TRUE(threads.queue().status().ok());
  EXPECT_EQ(threads.finished(), 1);
}

TEST(FrameQueueThreadsTest, FinishOnceWhenTheClientLeaves) {
  for (int round = 0; round < 50; ++round) {
    TwoThreads threads;
    const std::vector<int> written = threads.Run(20, /*lost_at=*/round % 20);
    EXPECT_EQ(written.back(), round % 20);
    EXPECT_TRUE(absl::IsCancelled(threads.queue().status()));
    EXPECT_EQ(threads.finished(), 1);
  }
}

}  // namespace
}  // namespace millrace
