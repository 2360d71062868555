// SPDX-License-Identifier: Apache-2.0
// Tells ThreadSanitizer about absl::Mutex; linked into the programs of the
// tsan preset only.
//
// Debian's Abseil is not instrumented, so what its mutexes order would look
// unordered. These definitions stand before the library's in the search order
// of the dynamic linker: each tells the sanitizer, then calls the library's.
// gRPC, which uses the same mutexes, is covered with it. What lies between the
// pre_ and post_ calls is not watched: the library evaluates conditions there,
// in whichever thread unlocks.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

#define MILLRACE_TO_STRING_(text) #text
#define MILLRACE_TO_STRING(text) MILLRACE_TO_STRING_(text)

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace {

// The library's own definition of a member function of absl, by the end of
// its mangled name.
template <typename Function>
Function* Library(const char* name, const char* start = "_ZN4absl") {
  const std::string space =
      MILLRACE_TO_STRING(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  const std::string symbol =
      start + std::to_string(space.size()) + space + name;
  void* found = dlsym(RTLD_NEXT, symbol.c_str());
  if (found == nullptr) {
    std::fprintf(stderr, "tsan_mutex.cc: Abseil has no %s\n", symbol.c_str());
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

constexpr unsigned kWrite = 0;
constexpr unsigned kRead = __tsan_mutex_read_lock;

// Whether this thread is in a call of the library, which calls itself.
thread_local bool in_library = false;

template <typename Call>
auto CallLibrary(const Call& call) {
  in_library = true;
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    in_library = false;
  } else {
    const auto result = call();
    in_library = false;
    return result;
  }
}

// A lock that is held afterwards, whatever `call` returns.
template <typename Call>
auto TakeLock(Mutex* mutex, unsigned flags, const Call& call) {
  if (in_library) return call();
  __tsan_mutex_pre_lock(mutex, flags);
  if constexpr (std::is_void_v<decltype(call())>) {
    CallLibrary(call);
    __tsan_mutex_post_lock(mutex, flags, 0);
  } else {
    const auto result = CallLibrary(call);
    __tsan_mutex_post_lock(mutex, flags, 0);
    return result;
  }
}

template <typename Call>
bool TryToLock(Mutex* mutex, unsigned flags, const Call& call) {
  if (in_library) return call();
  flags |= __tsan_mutex_try_lock;
  __tsan_mutex_pre_lock(mutex, flags);
  const bool locked = CallLibrary(call);
  if (!locked) flags |= __tsan_mutex_try_lock_failed;
  __tsan_mutex_post_lock(mutex, flags, 0);
  return locked;
}

template <typename Call>
void ReleaseLock(Mutex* mutex, unsigned flags, const Call& call) {
  if (in_library) return call();
  __tsan_mutex_pre_unlock(mutex, flags);
  CallLibrary(call);
  __tsan_mutex_post_unlock(mutex, flags);
}

// Unlocks, waits and locks again.
template <typename Call>
auto WaitUnlocked(Mutex* mutex, const Call& call) {
  if (in_library) return call();
  __tsan_mutex_pre_unlock(mutex, kWrite);
  __tsan_mutex_post_unlock(mutex, kWrite);
  return TakeLock(mutex, kWrite, call);
}

// What __tsan_release() of the same object has ordered.
void Acquire(const void* object) { __tsan_acquire(const_cast<void*>(object)); }

}  // namespace

Mutex::~Mutex() {
  static auto* const library = Library<void(Mutex*)>("5MutexD1Ev");
  library(this);
  __tsan_mutex_destroy(this, 0);
}

void Mutex::Lock() {
  static auto* const library = Library<void(Mutex*)>("5Mutex4LockEv");
  TakeLock(this, kWrite, [&] { library(this); });
}

void Mutex::ReaderLock() {
  static auto* const library = Library<void(Mutex*)>("5Mutex10ReaderLockEv");
  TakeLock(this, kRead, [&] { library(this); });
}

bool Mutex::TryLock() {
  static auto* const library = Library<bool(Mutex*)>("5Mutex7TryLockEv");
  return TryToLock(this, kWrite, [&] { return library(this); });
}

bool Mutex::ReaderTryLock() {
  static auto* const library = Library<bool(Mutex*)>("5Mutex13ReaderTryLockEv");
  return TryToLock(this, kRead, [&] { return library(this); });
}

void Mutex::Unlock() {
  static auto* const library = Library<void(Mutex*)>("5Mutex6UnlockEv");
  ReleaseLock(this, kWrite, [&] { library(this); });
}

void Mutex::ReaderUnlock() {
  static auto* const library = Library<void(Mutex*)>("5Mutex12ReaderUnlockEv");
  ReleaseLock(this, kRead, [&] { library(this); });
}

void Mutex::LockWhen(const Condition& condition) {
  static auto* const library = Library<void(Mutex*, const Condition*)>(
      "5Mutex8LockWhenERKNS0_9ConditionE");
  TakeLock(this, kWrite, [&] { library(this, &condition); });
}

bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const library =
      Library<bool(Mutex*, const Condition*, Duration)>(
          "5Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  return TakeLock(this, kWrite,
                  [&] { return library(this, &condition, timeout); });
}

bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  static auto* const library = Library<bool(Mutex*, const Condition*, Time)>(
      "5Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  return TakeLock(this, kWrite,
                  [&] { return library(this, &condition, deadline); });
}

void Mutex::ReaderLockWhen(const Condition& condition) {
  static auto* const library = Library<void(Mutex*, const Condition*)>(
      "5Mutex14ReaderLockWhenERKNS0_9ConditionE");
  TakeLock(this, kRead, [&] { library(this, &condition); });
}

void Mutex::Await(const Condition& condition) {
  static auto* const library =
      Library<void(Mutex*, const Condition*)>("5Mutex5AwaitERKNS0_9ConditionE");
  WaitUnlocked(this, [&] { library(this, &condition); });
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const library =
      Library<bool(Mutex*, const Condition*, Duration)>(
          "5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  return WaitUnlocked(this, [&] { return library(this, &condition, timeout); });
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static auto* const library = Library<bool(Mutex*, const Condition*, Time)>(
      "5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  return WaitUnlocked(this,
                      [&] { return library(this, &condition, deadline); });
}

void CondVar::Wait(Mutex* mutex) {
  static auto* const library =
      Library<void(CondVar*, Mutex*)>("7CondVar4WaitEPNS0_5MutexE");
  WaitUnlocked(mutex, [&] { library(this, mutex); });
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static auto* const library = Library<bool(CondVar*, Mutex*, Duration)>(
      "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  return WaitUnlocked(mutex, [&] { return library(this, mutex, timeout); });
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static auto* const library = Library<bool(CondVar*, Mutex*, Time)>(
      "7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  return WaitUnlocked(mutex, [&] { return library(this, mutex, deadline); });
}

void Notification::Notify() {
  static auto* const library =
      Library<void(Notification*)>("12Notification6NotifyEv");
  __tsan_release(this);
  library(this);
}

void Notification::WaitForNotification() const {
  static auto* const library = Library<void(const Notification*)>(
      "12Notification19WaitForNotificationEv", "_ZNK4absl");
  library(this);
  Acquire(this);
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static auto* const library = Library<bool(const Notification*, Duration)>(
      "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE",
      "_ZNK4absl");
  const bool notified = library(this, timeout);
  if (notified) Acquire(this);
  return notified;
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  static auto* const library = Library<bool(const Notification*, Time)>(
      "12Notification31WaitForNotificationWithDeadlineENS0_4TimeE",
      "_ZNK4absl");
  const bool notified = library(this, deadline);
  if (notified) Acquire(this);
  return notified;
}

bool BlockingCounter::DecrementCount() {
  static auto* const library =
      Library<bool(BlockingCounter*)>("15BlockingCounter14DecrementCountEv");
  __tsan_release(this);
  return library(this);
}

void BlockingCounter::Wait() {
  static auto* const library =
      Library<void(BlockingCounter*)>("15BlockingCounter4WaitEv");
  library(this);
  Acquire(this);
}

ABSL_NAMESPACE_END
}  // namespace absl
