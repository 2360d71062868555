// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/fleet_directory.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/wire/error_info.h"
#include "common/wire/manifest_proto.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

using State = FleetMemberInfo::State;

bool Serves(const FleetMemberInfo& info, int partition) {
  return std::find(info.partitions.begin(), info.partitions.end(), partition) !=
         info.partitions.end();
}

}  // namespace

std::shared_ptr<FleetEntry> FleetDirectory::MakeEntry(
    const std::string& address) const {
  auto entry = std::make_shared<FleetEntry>();
  entry->member = keeper_.Make();
  entry->member->address = address;
  transport_.Connect(*entry->member);
  entry->info.address = address;
  return entry;
}

bool FleetDirectory::Apply(const std::vector<std::string>& addresses) {
  list_error_ = absl::OkStatus();
  Entries entries;
  bool changed = false;
  const auto take_from = [](Entries& known, const std::string& address) {
    const auto at = std::find_if(
        known.begin(), known.end(),
        [&](const auto& entry) { return entry->info.address == address; });
    std::shared_ptr<FleetEntry> entry;
    if (at != known.end()) {
      entry = std::move(*at);
      known.erase(at);
    }
    return entry;
  };
  for (const std::string& address : addresses) {
    std::shared_ptr<FleetEntry> entry = take_from(entries_, address);
    changed |= entry == nullptr;
    if (entry == nullptr) entry = take_from(left_, address);
    entries.push_back(entry == nullptr ? MakeEntry(address) : std::move(entry));
  }
  changed |= !entries_.empty();
  std::move(entries_.begin(), entries_.end(), std::back_inserter(left_));
  entries_ = std::move(entries);
  return changed;
}

FleetDirectory::Entries FleetDirectory::EntriesToAsk() {
  // Only members in the list are handed out, so one that has left it and is
  // held by nobody else will stay so.
  std::erase_if(
      left_, [](const auto& entry) { return entry->member.use_count() == 1; });
  Entries all = entries_;
  all.insert(all.end(), left_.begin(), left_.end());
  return all;
}

FleetEntry* FleetDirectory::Find(const FleetMember& member) const {
  for (const Entries* entries : {&entries_, &left_}) {
    for (const auto& entry : *entries) {
      if (entry->member.get() == &member) return entry.get();
    }
  }
  return nullptr;
}

bool FleetDirectory::NoteListError(const absl::Status& error) {
  return std::exchange(list_error_, error) != error;
}

absl::Status FleetDirectory::Learn(const v1::DescribeReply& reply,
                                   FleetMemberInfo& info) {
  TakeAnswer(reply, info);
  if (reply.protocol_version() != kProtocolVersion ||
      reply.sampling_version() != kSamplingVersion) {
    return absl::FailedPreconditionError(StrCat(
        "server ", info.address, " has protocol version ",
        reply.protocol_version(), " and sampling version ",
        reply.sampling_version(), "; this program has ", kProtocolVersion,
        " and ", kSamplingVersion, "\nrun the same version everywhere"));
  }
  info.other_store = false;
  const std::string& expected =
      manifest_ ? manifest_->fingerprint : options_.fingerprint;
  if (!expected.empty() && reply.fingerprint() != expected) {
    info.other_store = true;
    return absl::FailedPreconditionError(
        StrCat("server ", info.address, " has another store: fingerprint ",
               reply.fingerprint(), ", expected ", expected,
               manifest_from_.empty() ? ""
               : manifest_from_ == info.address
                   ? ", which it had before"
                   : StrCat(", which ", manifest_from_, " has"),
               "\nserve one store everywhere"));
  }
  if (!settled_) {
    MILLRACE_RETURN_IF_ERROR(LearnManifest(reply, info.address));
  }
  info.state = reply.draining() ? State::kDraining : State::kReady;
  return absl::OkStatus();
}

absl::Status FleetDirectory::LearnManifest(const v1::DescribeReply& reply,
                                           const std::string& address) {
  auto theirs = ManifestFromProto(reply);
  if (!theirs.ok()) {
    return absl::FailedPreconditionError(
        StrCat("server ", address, " describes an invalid store: ",
               std::string(theirs.status().message())));
  }
  if (!manifest_) {
    manifest_ = *theirs;
    manifest_from_ = address;
    manifest_->splits.clear();
    manifest_->edge_splits.clear();
  }
  MergeSplits(theirs->splits, address, manifest_->splits);
  MergeSplits(theirs->edge_splits, address, manifest_->edge_splits);
  return absl::OkStatus();
}

template <typename Split>
void FleetDirectory::MergeSplits(const std::vector<Split>& theirs,
                                 const std::string& address,
                                 std::vector<Split>& ours) {
  for (const Split& split : theirs) {
    const std::string folder = SplitFolder(manifest_->schema, split);
    const auto [known, is_new] =
        known_splits_.try_emplace(folder, KnownSplit{ours.size(), address});
    if (is_new) {
      ours.push_back(split);
      continue;
    }
    SplitIdentity& expected = ours[known->second.place].identity;
    const std::string& fingerprint = split.identity.fingerprint;
    if (expected.fingerprint.empty()) expected.fingerprint = fingerprint;
    if (fingerprint.empty() || fingerprint == expected.fingerprint) continue;
    expected.conflict =
        StrCat(folder, " differs between servers: ", known->second.from,
               " has fingerprint ", expected.fingerprint, ", ", address,
               " has ", fingerprint,
               "\nadd it under another name, with the same content in every "
               "copy of the store");
  }
}

bool FleetDirectory::AnyUnknown() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const auto& entry) {
    return entry->info.state == FleetMemberInfo::State::kUnknown;
  });
}

FleetDirectory::Entries FleetDirectory::OwnersIn(State state,
                                                 int partition) const {
  Entries owners;
  for (const auto& entry : entries_) {
    if (entry->info.state == state && Serves(entry->info, partition)) {
      owners.push_back(entry);
    }
  }
  return owners;
}

std::vector<std::shared_ptr<FleetMember>> FleetDirectory::Owners(
    int partition) const {
  std::vector<std::shared_ptr<FleetMember>> owners;
  for (const State state : {State::kReady, State::kDraining}) {
    for (const auto& entry : OwnersIn(state, partition)) {
      owners.push_back(entry->member);
    }
  }
  return owners;
}

absl::Status FleetDirectory::AllShutOut() const {
  for (const auto& entry : entries_) {
    const absl::Status& error = entry->info.error;
    if (entry->info.state != State::kRefused &&
        !absl::IsUnauthenticated(error) && !absl::IsPermissionDenied(error)) {
      return absl::OkStatus();
    }
  }
  return entries_.empty() ? absl::OkStatus() : entries_.front()->info.error;
}

std::string FleetDirectory::Tried() const {
  std::string tried;
  for (const auto& entry : entries_) {
    const FleetMemberInfo& info = entry->info;
    tried += StrCat(tried.empty() ? "" : "; ", info.address, ": ",
                    info.state == State::kUnknown ? "not answered yet"
                                                  : StateName(info.state));
    if (info.error.ok() && !info.partitions.empty()) {
      tried += ", serves";
      for (const int partition : info.partitions) {
        tried += StrCat(" ", partition);
      }
    } else if (!info.error.ok()) {
      tried += StrCat(", ", FirstLine(info.error));
    }
    for (const auto& [partition, what] : info.damaged) {
      tried += StrCat(", partition ", partition, " is damaged: ", what);
    }
    if (tried.size() > 600) return tried + "; ...";
  }
  if (!list_error_.ok()) {
    tried +=
        StrCat(tried.empty() ? "" : "; ", std::string(list_error_.message()));
  }
  return tried.empty() ? StrCat(options_.list, " names no server") : tried;
}

absl::Status FleetDirectory::CheckOneStore() const {
  if (!options_.fingerprint.empty()) return absl::OkStatus();
  for (const auto& entry : entries_) {
    if (entry->info.other_store) return entry->info.error;
  }
  return absl::OkStatus();
}

bool FleetDirectory::AllAnswer() const {
  return std::none_of(entries_.begin(), entries_.end(), [](const auto& entry) {
    return entry->info.state == State::kUnknown ||
           entry->info.state == State::kUnreachable;
  });
}

bool FleetDirectory::OnlyThese(
    int partition, const std::vector<const FleetMember*>& members) const {
  const auto owners = Owners(partition);
  return AllAnswer() && !owners.empty() &&
         std::all_of(owners.begin(), owners.end(), [&](const auto& owner) {
           return std::find(members.begin(), members.end(), owner.get()) !=
                  members.end();
         });
}

absl::Status FleetDirectory::NoOwner(int partition) const {
  const FleetMemberInfo* refused = nullptr;
  std::string reasons;  // of the members that have the partition
  bool any_damaged = false;
  for (const auto& entry : entries_) {
    const FleetMemberInfo& info = entry->info;
    const auto damage = info.damaged.find(partition);
    std::string reason;
    if (info.state == State::kRefused && Serves(info, partition)) {
      refused = &info;
      reason = FirstLine(info.error);
    } else if (damage != info.damaged.end()) {
      any_damaged = true;
      reason = StrCat("server ", info.address, ": ", damage->second);
    }
    if (reason.empty()) continue;
    reasons += StrCat(reasons.empty() ? "" : "; ", reason);
  }
  if (!reasons.empty() && AllAnswer()) {
    const std::string what = StrCat("partition ", partition, ": ", reasons);
    return WithErrorInfo(
        any_damaged
            ? absl::DataLossError(StrCat(
                  what,
                  "\nrestore the store from a copy, verify it, and start the "
                  "server again"))
            : absl::FailedPreconditionError(
                  StrCat(what, AdviceOf(refused->error))),
        {.partition = partition});
  }
  return WithErrorInfo(
      absl::UnavailableError(
          StrCat("partition ", partition, ": no server to ask (", Tried(),
                 ")\nstart a server that has it, or correct the list of "
                 "servers")),
      {.partition = partition});
}

}  // namespace millrace
