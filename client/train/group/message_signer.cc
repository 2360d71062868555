// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/message_signer.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>
#include <utility>

#include "common/base/check.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr size_t kSignatureBytes = 32;

// Puts the length before a text, so that different lists of texts never give
// the same bytes.
std::string Framed(std::string_view text) {
  return StrCat(text.size(), ":", text);
}

}  // namespace

MessageSigner::MessageSigner(std::string secret, std::string run)
    : secret_(std::move(secret)), run_(std::move(run)) {}

std::string MessageSigner::Signature(std::string_view key,
                                     std::string_view message) const {
  const std::string text =
      StrCat("millrace message 1", Framed(run_), Framed(key), Framed(message));
  std::array<unsigned char, kSignatureBytes> signature;
  unsigned int bytes = 0;
  MILLRACE_CHECK(HMAC(EVP_sha256(), secret_.data(),
                      static_cast<int>(secret_.size()),
                      reinterpret_cast<const unsigned char*>(text.data()),
                      text.size(), signature.data(), &bytes) != nullptr);
  return std::string(signature.begin(), signature.begin() + bytes);
}

std::string MessageSigner::Sign(std::string_view key,
                                std::string_view message) const {
  return StrCat(Signature(key, message), message);
}

std::optional<std::string> MessageSigner::Verify(
    std::string_view key, std::string_view signed_message) const {
  if (signed_message.size() < kSignatureBytes) return std::nullopt;
  const std::string_view message = signed_message.substr(kSignatureBytes);
  // Takes the same time however many bytes are right, so that it reveals
  // nothing.
  if (CRYPTO_memcmp(Signature(key, message).data(), signed_message.data(),
                    kSignatureBytes) != 0) {
    return std::nullopt;
  }
  return std::string(message);
}

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  MILLRACE_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()),
                            static_cast<int>(count)) == 1);
  return bytes;
}

}  // namespace millrace
