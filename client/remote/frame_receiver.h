// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/grpc/frames.h"

namespace millrace {

// Takes the frames of one stream, from one thread at a time.
class FrameReceiver {
 public:
  virtual ~FrameReceiver() = default;

  // Takes a frame; an error ends the stream with that error. INVALID_ARGUMENT
  // and INTERNAL mean that the frame is wrong: see ProtocolError().
  virtual absl::Status OnFrame(const ReceivedFrame& frame) = 0;

  // Returns an error that says what is missing from a stream that has ended.
  virtual absl::Status CheckComplete() const = 0;
};

}  // namespace millrace
