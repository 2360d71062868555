// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/run_handshake.h"

#include <utility>

#include "common/base/field_error.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr size_t kNonceBytes = 16;

// These are between the nonce and the run's id in an answer.
constexpr char kFirstProcess = 'f';
constexpr char kRestarted = 'r';

// Values that are not signed mean a different secret if at least this many are
// written, over at least this time. Rank 0 gives up first: when the others see
// it leave, they know from its messages that it has a different secret.
constexpr int kTimes = 10;
constexpr absl::Duration kPatienceOfRankZero = absl::Seconds(3);
constexpr absl::Duration kPatience = absl::Seconds(6);

std::string HelloKey(int rank) { return StrCat("hello/", rank); }
std::string WelcomeKey(int rank) { return StrCat("welcome/", rank); }

}  // namespace

RunHandshake::RunHandshake(const GroupAddress& group,
                           c10::intrusive_ptr<c10d::TCPStore> store)
    : group_(group),
      store_(std::move(store), MessageSigner(group.secret, /*run=*/"")),
      nonce_(RandomBytes(kNonceBytes)),
      run_(group.rank == 0 ? RandomBytes(kNonceBytes) : ""),
      not_signed_(group.world),
      nonces_(group.world) {}

SignedStore::Value RunHandshake::ReadFrom(int rank, const std::string& key) {
  using Kind = SignedStore::Value::Kind;
  SignedStore::Value value = store_.Read(key);
  NotSigned& not_signed = not_signed_[rank];
  if (value.kind == Kind::kSigned) not_signed = {};
  if (value.kind != Kind::kNotSigned) return value;
  // Ensures that a value counts again only if it is written again.
  store_.Remove(key);
  if (not_signed.times++ == 0) not_signed.since = SteadyNow();
  suspected_mismatch_ =
      WithReason(absl::FailedPreconditionError(StrCat(
                     "rank ", rank,
                     group_.secret.empty()
                         ? " has a secret, and this rank has none"
                         : " has a different secret from this rank, or none")),
                 Reason{"other_secret"});
  const absl::Duration patience =
      group_.rank == 0 ? kPatienceOfRankZero : kPatience;
  if (not_signed.times >= kTimes &&
      SteadyNow() - not_signed.since >= patience) {
    mismatch_ = suspected_mismatch_;
  }
  return value;
}

void RunHandshake::AnswerRanks(const std::vector<bool>& joined) {
  store_.Write(HelloKey(0), "");
  for (int rank = 1; rank < group_.world; ++rank) {
    // Once a rank has joined, strangers cannot make it look like a mismatch.
    const SignedStore::Value hello = joined[rank]
                                         ? store_.Read(HelloKey(rank))
                                         : ReadFrom(rank, HelloKey(rank));
    const std::string& nonce = hello.message;
    if (nonce.size() != kNonceBytes) continue;
    const bool restarted = joined[rank] && nonce != nonces_[rank];
    if (!restarted) nonces_[rank] = nonce;
    store_.Write(
        WelcomeKey(rank),
        StrCat(nonce, std::string(1, restarted ? kRestarted : kFirstProcess),
               run_));
  }
}

bool RunHandshake::AskRankZero() {
  // Rank 0 writes this whether it was asked or not, which shows if it has the
  // same secret.
  ReadFrom(0, HelloKey(0));
  store_.Write(HelloKey(group_.rank), nonce_);
  const std::string answer = store_.Read(WelcomeKey(group_.rank)).message;
  if (answer.size() <= kNonceBytes || !answer.starts_with(nonce_)) return false;
  restarted_ = answer[kNonceBytes] == kRestarted;
  run_ = answer.substr(kNonceBytes + 1);
  return true;
}

}  // namespace millrace
