// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/train_check.h"

#include <ATen/ops/full.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "client/tensor/torch_status.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"

namespace millrace {
namespace {

absl::Status Refuse(const std::string& field, const absl::Status& why,
                    const char* advice) {
  return WithAdvice(
      FieldStatus(why.code(),
                  {.field = field, .limit = std::string(why.message())}),
      advice);
}

}  // namespace

absl::Status CheckLayers(int layers, int hops, const std::string& fanouts) {
  if (layers == hops) return absl::OkStatus();
  return InvalidField({.field = "layers",
                       .value = StrCat(layers),
                       .limit = StrCat("does not fit the ", hops, " number",
                                       hops == 1 ? "" : "s", " of ", fanouts)},
                      Reason{"other_depth"});
}

absl::Status CheckWritableFile(const std::string& field,
                               const std::string& path) {
  constexpr char kAdvice[] = "name a file in a folder that can be written";
  std::error_code error;
  const std::filesystem::file_status there =
      std::filesystem::status(path, error);
  // A new file would take the place of a device or a pipe.
  if (exists(there) && !is_regular_file(there)) {
    return Refuse(field,
                  absl::InvalidArgumentError(StrCat(
                      path, is_directory(there) ? " is a folder"
                                                : " is not a regular file")),
                  kAdvice);
  }
  const std::string probe = path + ".tmp";
  std::filesystem::remove(probe, error);
  const absl::Status created = CreateNewFile(probe).status();
  std::filesystem::remove(probe, error);
  return created.ok() ? created : Refuse(field, created, kAdvice);
}

absl::Status CheckWritableFolder(const std::string& field,
                                 const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    return Refuse(field, FileError("create", path, error.value()),
                  "name a folder that can be made and written");
  }
  return CheckWritableFile(field,
                           (std::filesystem::path(path) / "last.pt").string());
}

absl::Status CheckSameOnAllRanks(Collectives& collectives,
                                 std::string_view what, uint64_t checksum) {
  return CatchTorch("comparing files of ranks", [&]() -> absl::Status {
    const auto own = static_cast<int64_t>(checksum);
    const at::Tensor first = at::full({1}, own, at::kLong);
    MILLRACE_RETURN_IF_ERROR(collectives.Broadcast(first, 0));
    if (first.item().toLong() == own) return absl::OkStatus();
    return absl::FailedPreconditionError(
        StrCat(what, " of rank ", collectives.rank(),
               " differs from rank 0's\ncopy rank 0's to all hosts"));
  });
}

absl::Status CheckSameFingerprint(Collectives& collectives,
                                  std::string_view what,
                                  const std::string& fingerprint,
                                  Reason reason) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string first,
                            collectives.ShareBytes(fingerprint));
  if (first == fingerprint) return absl::OkStatus();
  return WithReason(absl::FailedPreconditionError(StrCat(
                        "rank ", collectives.rank(), " reads the ", what, " ",
                        fingerprint, ", rank 0 the ", what, " ", first)),
                    reason);
}

// A list of servers may contain those of two stores, and each rank believes the
// first one that answers.
absl::Status CheckSameSource(Collectives& collectives,
                             const Manifest& manifest) {
  constexpr Reason kReason = {"ranks_read_other_stores"};
  MILLRACE_RETURN_IF_ERROR(CheckSameFingerprint(
      collectives, "dataset", manifest.dataset_fingerprint, kReason));
  return CheckSameFingerprint(collectives, "store", manifest.fingerprint,
                              kReason);
}

// Different splits may have been added under one name to copies of a store.
absl::Status CheckSameSplits(Collectives& collectives,
                             const RunIdentity& splits) {
  std::string all;
  for (const auto& [name, fingerprint] : splits) {
    all += StrCat(all.empty() ? "" : ", ",
                  name.substr(sizeof(kSplitPrefix) - 1), " ", fingerprint);
  }
  return CheckSameFingerprint(collectives, "splits", all,
                              Reason{"ranks_have_other_splits"});
}

absl::Status CheckSameInGroup(Collectives& collectives,
                              const RunIdentity& texts, Reason reason) {
  MILLRACE_ASSIGN_OR_RETURN(
      const std::string bytes,
      collectives.ShareBytes(nlohmann::json(texts).dump()));
  const auto first =
      nlohmann::json::parse(bytes, nullptr, /*exceptions=*/false);
  const auto shown = [](const std::string& text) {
    return text.empty() ? std::string("not given") : text;
  };
  for (const auto& [key, text] : texts) {
    std::string other;
    if (first.is_object() && first.contains(key)) other = first[key];
    if (other == text) continue;
    const absl::Status differs = InvalidField(
        {.field = IdentityField(key),
         .value = StrCat("on rank ", collectives.rank()),
         .limit = StrCat(shown(text), ", but on rank 0: ", shown(other))},
        reason);
    return reason.word.empty()
               ? WithAdvice(differs, "start every rank with the same options")
               : differs;
  }
  return absl::OkStatus();
}

}  // namespace millrace
