// SPDX-License-Identifier: Apache-2.0
#include "common/net/http_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/base/thread_pool.h"
#include "common/net/http_request.h"
#include "common/net/listening_socket.h"

namespace millrace {
namespace {

// Pages that wait for a thread.
constexpr size_t kMaxWaitingPages = 64;
// Connections accepted before those that are open get their turn again.
constexpr int kAcceptsInARow = 32;
// How long a client may take to close its end once it has its answer.
constexpr absl::Duration kCloseTimeout = absl::Seconds(1);

std::string_view Reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "HTTP Version Not Supported";
  }
}

std::string Print(const HttpResponse& response, bool with_body) {
  return StrCat("HTTP/1.1 ", response.status, " ", Reason(response.status),
                "\r\nContent-Type: ", response.type,
                "\r\nContent-Length: ", response.body.size(),
                response.status == 405 ? "\r\nAllow: GET, HEAD" : "",
                "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
                with_body ? response.body : "");
}

// What is answered without a page.
std::string PrintError(int status, bool with_body = true) {
  HttpResponse response;
  response.status = status;
  response.body = StrCat(Reason(status), "\n");
  return Print(response, with_body);
}

struct Connection {
  enum class Phase {
    kRequest,  // is read
    kPage,     // is made
    kAnswer,   // is written
    kEnd,      // the client closes its end
  };
  UniqueFd fd;
  SteadyTime deadline;  // of the phase
  Phase phase = Phase::kRequest;
  std::string bytes;  // of the request so far, or of the answer
  size_t sent = 0;    // of the answer
  bool closed = false;
};

}  // namespace

// The connections, by age, and the thread that serves them.
class HttpServer::Loop {
 public:
  Loop(std::unique_ptr<ListeningSocket> socket, HttpPages pages,
       const HttpServerOptions& options)
      : pages_(std::move(pages)),
        options_(options),
        socket_(std::move(socket)),
        pool_("http", options.threads, kMaxWaitingPages),
        thread_([this] { Run(); }) {}
  ~Loop() {
    stopping_ = true;
    socket_->Wake();
    thread_.join();
    pool_.Close();
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  const std::string& address() const { return socket_->address(); }

 private:
  using Id = uint64_t;
  using Phase = Connection::Phase;

  void Run();
  // Sleeps until there is something to do; returns who is ready.
  std::vector<Id> Await();
  void AcceptSome();
  // Makes room for one more; false when all are busy.
  bool MakeRoom();
  void TakeAnswers();
  void CloseExpired();
  void Serve(Id id);
  void Read(Id id, Connection& connection);
  void StartPage(Id id, Connection& connection, const HttpRequest& request);
  void Answer(Connection& connection, std::string bytes);
  void Write(Connection& connection);
  void AwaitEnd(Connection& connection);

  const HttpPages pages_;
  const HttpServerOptions options_;
  const std::unique_ptr<ListeningSocket> socket_;
  std::atomic<bool> stopping_{false};

  // Of the thread.
  Id next_id_ = 0;
  std::map<Id, Connection> connections_;

  Mutex mutex_;
  std::vector<std::pair<Id, std::string>> answers_ ABSL_GUARDED_BY(mutex_);

  ThreadPool pool_;
  std::thread thread_;  // last: uses all of the above
};

void HttpServer::Loop::Run() {
  while (!stopping_) {
    for (const Id id : Await()) Serve(id);
    AcceptSome();
    // After Accept(), which ends what Wake() said.
    TakeAnswers();
    CloseExpired();
  }
}

std::vector<HttpServer::Loop::Id> HttpServer::Loop::Await() {
  std::vector<pollfd> waits = {{socket_->fd(), POLLIN, 0}};
  std::vector<Id> ids;
  SteadyTime next = SteadyTime::InfiniteFuture();
  for (const auto& [id, connection] : connections_) {
    if (connection.phase == Phase::kPage) continue;
    const short events = connection.phase == Phase::kAnswer ? POLLOUT : POLLIN;
    waits.push_back({connection.fd.get(), events, 0});
    ids.push_back(id);
    next = std::min(next, connection.deadline);
  }
  const timespec left =
      absl::ToTimespec(std::max(next - SteadyNow(), absl::ZeroDuration()));
  std::vector<Id> ready;
  if (ppoll(waits.data(), waits.size(),
            next == SteadyTime::InfiniteFuture() ? nullptr : &left,
            nullptr) <= 0) {
    return ready;
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    if (waits[i + 1].revents != 0) ready.push_back(ids[i]);
  }
  return ready;
}

void HttpServer::Loop::AcceptSome() {
  for (int i = 0; i < kAcceptsInARow; ++i) {
    UniqueFd fd = socket_->Accept();
    if (fd.get() < 0) return;
    if (!MakeRoom()) continue;
    Connection connection;
    connection.fd = std::move(fd);
    connection.deadline = SteadyNow() + options_.request_timeout;
    const Id id = next_id_++;
    connections_.emplace(id, std::move(connection));
    // The request is often there, and safe from MakeRoom() once it is read.
    Serve(id);
  }
}

bool HttpServer::Loop::MakeRoom() {
  if (connections_.size() < static_cast<size_t>(options_.max_connections)) {
    return true;
  }
  const auto silent = std::find_if(
      connections_.begin(), connections_.end(), [](const auto& entry) {
        const Phase phase = entry.second.phase;
        return phase == Phase::kRequest || phase == Phase::kEnd;
      });
  if (silent == connections_.end()) return false;
  connections_.erase(silent);
  return true;
}

void HttpServer::Loop::TakeAnswers() {
  std::vector<std::pair<Id, std::string>> answers;
  {
    MutexLock lock(&mutex_);
    answers.swap(answers_);
  }
  for (auto& [id, bytes] : answers) {
    Answer(connections_.at(id), std::move(bytes));
  }
}

void HttpServer::Loop::CloseExpired() {
  const SteadyTime now = SteadyNow();
  std::erase_if(connections_, [now](const auto& entry) {
    const Connection& connection = entry.second;
    const bool waits = connection.phase != Phase::kPage;
    return connection.closed || (waits && connection.deadline <= now);
  });
}

void HttpServer::Loop::Serve(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (connection.phase == Phase::kAnswer) {
    Write(connection);
  } else if (connection.phase != Phase::kPage) {
    Read(id, connection);
  }
}

void HttpServer::Loop::Read(Id id, Connection& connection) {
  char buffer[kMaxHttpHeadBytes];
  const ssize_t count = recv(connection.fd.get(), buffer, sizeof buffer, 0);
  if (count <= 0) {
    connection.closed = count == 0 || (errno != EAGAIN && errno != EINTR);
    return;
  }
  // What comes after the request has no meaning.
  if (connection.phase == Phase::kEnd) return;
  connection.bytes.append(buffer, static_cast<size_t>(count));
  if (const auto request = ReadHttpRequest(connection.bytes)) {
    StartPage(id, connection, *request);
  }
}

void HttpServer::Loop::StartPage(Id id, Connection& connection,
                                 const HttpRequest& request) {
  if (request.error != 0) return Answer(connection, PrintError(request.error));
  const bool with_body = request.method != "HEAD";
  const auto page = pages_.find(request.path);
  if (page == pages_.end()) {
    return Answer(connection, PrintError(404, with_body));
  }
  if (with_body && request.method != "GET") {
    return Answer(connection, PrintError(405));
  }
  connection.phase = Phase::kPage;
  const bool started = pool_.TrySubmit([this, id, with_body, page] {
    std::string bytes = Print(page->second(), with_body);
    {
      MutexLock lock(&mutex_);
      answers_.emplace_back(id, std::move(bytes));
    }
    socket_->Wake();
  });
  if (!started) Answer(connection, PrintError(503, with_body));
}

void HttpServer::Loop::Answer(Connection& connection, std::string bytes) {
  connection.phase = Phase::kAnswer;
  connection.bytes = std::move(bytes);
  connection.deadline = SteadyNow() + options_.answer_timeout;
  Write(connection);
}

void HttpServer::Loop::Write(Connection& connection) {
  const std::string_view rest =
      std::string_view(connection.bytes).substr(connection.sent);
  const ssize_t count =
      send(connection.fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
  if (count < 0) {
    connection.closed = errno != EAGAIN && errno != EINTR;
    return;
  }
  connection.sent += static_cast<size_t>(count);
  if (connection.sent == connection.bytes.size()) AwaitEnd(connection);
}

// A socket that is closed while it holds bytes that were not read is reset,
// and the client may lose its answer.
void HttpServer::Loop::AwaitEnd(Connection& connection) {
  shutdown(connection.fd.get(), SHUT_WR);
  connection.phase = Phase::kEnd;
  connection.bytes.clear();
  connection.deadline = SteadyNow() + kCloseTimeout;
}

HttpServer::HttpServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
HttpServer::~HttpServer() = default;

const std::string& HttpServer::address() const { return loop_->address(); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const HostPort& address, const std::string& option, HttpPages pages,
    const HttpServerOptions& options) {
  MILLRACE_ASSIGN_OR_RETURN(auto socket,
                            ListeningSocket::Open(address, option));
  return std::unique_ptr<HttpServer>(new HttpServer(
      std::make_unique<Loop>(std::move(socket), std::move(pages), options)));
}

}  // namespace millrace
