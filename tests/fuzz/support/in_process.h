// SPDX-License-Identifier: Apache-2.0
// A server's calls without a network: requests in, messages out.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/core/core.h"

namespace millrace::fuzz {

// A server of RichStore(); lives until the process ends.
ServerCore& RichServer();

struct StreamedAnswer {
  absl::Status status;
  std::vector<std::string> messages;
};
// Answer the bytes of a SampleRequest or a GatherRequest.
StreamedAnswer AnswerSample(std::string_view request);
StreamedAnswer AnswerGather(std::string_view request);

}  // namespace millrace::fuzz
