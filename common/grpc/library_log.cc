// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/library_log.h"

#include <grpc/support/log.h>

#include <string>

#include "common/base/log.h"

namespace millrace {
namespace {

void LogOfGrpc(gpr_log_func_args* args) {
  const std::string text = std::string("gRPC: ") + args->message;
  if (args->severity == GPR_LOG_SEVERITY_ERROR) {
    LogWarning(text);
  } else {
    LogInfo(text);
  }
}

}  // namespace

void TakeGrpcLog() { gpr_set_log_function(LogOfGrpc); }

}  // namespace millrace
