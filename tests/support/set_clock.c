// SPDX-License-Identifier: Apache-2.0
// Replaces the C library's time of day by one that tests can set, as an
// administrator sets a machine's clock: CLOCK_REALTIME jumps, CLOCK_MONOTONIC
// carries on, and waits until a time of day end earlier or later. Relative
// waits are unaffected. There are two ways to use it:
//
// A program can link this file and call SetClockAhead() (see set_clock.h).
//
// Other programs can preload it as a library (LD_PRELOAD). Then the file named
// by SET_CLOCK_FILE contains how far their clock is ahead: 8 bytes, nanoseconds
// in this machine's byte order. It may be rewritten while they run.
//
// A wait until a time of day is cut into slices. Condition variables and
// futexes may wake spuriously, and that is how a program sees the end of a
// slice.
#define _GNU_SOURCE
#include "tests/support/set_clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { kSecond = 1000000000, kSlice = 20000000 };

static _Atomic int64_t own_ahead = 0;
static _Atomic int64_t* ahead = &own_ahead;

void SetClockAhead(int64_t nanoseconds) { own_ahead = nanoseconds; }

// The C library's function `name`.
#define REAL(name, ...)                                           \
  ({                                                              \
    static __typeof__(name)* _Atomic real;                        \
    if (!real) real = (__typeof__(name)*)dlsym(RTLD_NEXT, #name); \
    real(__VA_ARGS__);                                            \
  })

__attribute__((constructor)) static void MapFile(void) {
  const char* path = getenv("SET_CLOCK_FILE");
  if (path == NULL) return;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  void* map = fd < 0 ? MAP_FAILED
                     : mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) abort();
  close(fd);
  ahead = map;
}

static int64_t FromTimespec(const struct timespec* time) {
  return time->tv_sec * (int64_t)kSecond + time->tv_nsec;
}

static struct timespec ToTimespec(int64_t time) {
  if (time < 0) time = 0;
  return (struct timespec){time / kSecond, time % kSecond};
}

// The kernel's time of day.
static int64_t KernelTime(void) {
  struct timespec time;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &time);
  return FromTimespec(&time);
}

// Returns when the next slice of a wait until `when` ends by the kernel's
// clock, and whether the whole wait ends then.
static struct timespec EndOfSlice(const struct timespec* when, int* whole) {
  const int64_t soon = KernelTime() + kSlice;
  // Times far in the future must not overflow.
  const int64_t left = when->tv_sec > INT64_MAX / kSecond / 2
                           ? INT64_MAX / 2
                           : FromTimespec(when) - *ahead;
  *whole = left <= soon;
  return ToTimespec(*whole ? left : soon);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int result = REAL(clock_gettime, clock, time);
  const int of_day = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (result == 0 && of_day) *time = ToTimespec(FromTimespec(time) + *ahead);
  return result;
}

int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *time = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}

int timespec_get(struct timespec* time, int base) {
  if (base != TIME_UTC) return 0;
  clock_gettime(CLOCK_REALTIME, time);
  return base;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec* when,
                    struct timespec* left) {
  if (clock != CLOCK_REALTIME || (flags & TIMER_ABSTIME) == 0) {
    return REAL(clock_nanosleep, clock, flags, when, left);
  }
  for (int whole = 0;;) {
    const struct timespec end = EndOfSlice(when, &whole);
    const int result = REAL(clock_nanosleep, clock, flags, &end, left);
    if (result != 0 || whole) return result;
  }
}

// The result of a wait for a condition variable after one slice: unless that
// was the last one, it looks like a spurious wakeup.
static int AfterSlice(int result, int whole) {
  return result == ETIMEDOUT && !whole ? 0 : result;
}

int pthread_cond_timedwait(pthread_cond_t* restrict condition,
                           pthread_mutex_t* restrict mutex,
                           const struct timespec* restrict when) {
  // glibc marks a condition variable that waits by CLOCK_MONOTONIC in this bit.
  if (condition->__data.__wrefs & 2) {
    return REAL(pthread_cond_timedwait, condition, mutex, when);
  }
  int whole = 0;
  const struct timespec end = EndOfSlice(when, &whole);
  return AfterSlice(REAL(pthread_cond_timedwait, condition, mutex, &end),
                    whole);
}

int pthread_cond_clockwait(pthread_cond_t* restrict condition,
                           pthread_mutex_t* restrict mutex, clockid_t clock,
                           const struct timespec* restrict when) {
  if (clock != CLOCK_REALTIME) {
    return REAL(pthread_cond_clockwait, condition, mutex, clock, when);
  }
  int whole = 0;
  const struct timespec end = EndOfSlice(when, &whole);
  return AfterSlice(REAL(pthread_cond_clockwait, condition, mutex, clock, &end),
                    whole);
}

int pthread_mutex_timedlock(pthread_mutex_t* restrict mutex,
                            const struct timespec* restrict when) {
  for (int whole = 0;;) {
    const struct timespec end = EndOfSlice(when, &whole);
    const int result = REAL(pthread_mutex_timedlock, mutex, &end);
    if (result != ETIMEDOUT || whole) return result;
  }
}

int sem_timedwait(sem_t* restrict semaphore,
                  const struct timespec* restrict when) {
  for (int whole = 0;;) {
    const struct timespec end = EndOfSlice(when, &whole);
    const int result = REAL(sem_timedwait, semaphore, &end);
    if (result == 0 || errno != ETIMEDOUT || whole) return result;
  }
}

int sem_clockwait(sem_t* restrict semaphore, clockid_t clock,
                  const struct timespec* restrict when) {
  if (clock == CLOCK_REALTIME) return sem_timedwait(semaphore, when);
  return REAL(sem_clockwait, semaphore, clock, when);
}

// Abseil calls futexes itself.
long syscall(long number, ...) {
  long a[6];
  va_list arguments;
  va_start(arguments, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(arguments, long);
  va_end(arguments);
  const int absolute = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME;
  const struct timespec* when = (const struct timespec*)a[3];
  if (number != SYS_futex || when == NULL ||
      (a[1] & ~FUTEX_PRIVATE_FLAG) != absolute) {
    return REAL(syscall, number, a[0], a[1], a[2], a[3], a[4], a[5]);
  }
  int whole = 0;
  const struct timespec end = EndOfSlice(when, &whole);
  const long result = REAL(syscall, number, a[0], a[1], a[2], &end, a[4], a[5]);
  if (result == -1 && errno == ETIMEDOUT && !whole) errno = EINTR;
  return result;
}
