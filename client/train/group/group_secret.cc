// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/group_secret.h"

#include <sys/stat.h>

#include "common/base/field_error.h"
#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/file/file.h"

namespace millrace {
namespace {

constexpr size_t kLeastBytes = 16;
constexpr size_t kMostBytes = 64 << 10;

}  // namespace

absl::StatusOr<std::string> ReadGroupSecret(const std::string& path) {
  absl::StatusOr<std::string> secret = ReadFile(path, kMostBytes);
  if (!secret.ok()) {
    return FieldStatus(secret.status().code(),
                       {.field = "rendezvous_secret",
                        .limit = std::string(secret.status().message())});
  }
  if (secret->size() < kLeastBytes) {
    return WithAdvice(
        InvalidField(
            {.field = "rendezvous_secret",
             .limit = StrCat(path, " has ", secret->size(), " bytes; at least ",
                             kLeastBytes, " are needed")}),
        StrCat("make it with `openssl rand -hex 32 >", path,
               "` and copy it to all hosts"));
  }
  struct stat file = {};
  if (stat(path.c_str(), &file) == 0 && (file.st_mode & (S_IRGRP | S_IROTH))) {
    LogWarning(StrCat("other users can read the secret of this group\nchmod "
                      "600 ",
                      path),
               {{"file", path}});
  }
  return secret;
}

}  // namespace millrace
