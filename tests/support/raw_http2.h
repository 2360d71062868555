// SPDX-License-Identifier: Apache-2.0
// A minimal HTTP/2 client, to do what gRPC's own clients never do.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstdint>
#include <string>

#include "tests/support/socket_client.h"

namespace millrace::testing {

// One connection to a server at "127.0.0.1:PORT". Reads what the server sends
// only while waiting for something, at most 60 s.
// Not thread-safe.
class RawHttp2 {
 public:
  // `from`: as for SocketClient.
  explicit RawHttp2(const std::string& address, const char* from = "127.0.0.1")
      : client_(std::stoi(address.substr(address.find(':') + 1)), from) {
    const timeval patience = {.tv_sec = 60, .tv_usec = 0};
    setsockopt(client_.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience,
               sizeof patience);
    EXPECT_TRUE(client_.connected());
    Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0, ""));
    ReadFrame();  // sets the windows of streams
  }

  // Whether the server closed the connection or was silent for too long.
  bool closed() const { return closed_; }

  // Starts a call by sending only its headers. Returns its stream.
  uint32_t Open(const std::string& path) {
    const uint32_t stream = next_stream_;
    next_stream_ += 2;
    Send(Frame(kHeaders, kEndHeaders, stream,
               Header(":method", "POST") + Header(":scheme", "http") +
                   Header(":path", path) + Header(":authority", "x") +
                   Header("te", "trailers") +
                   Header("content-type", "application/grpc")));
    return stream;
  }

  // Sends bytes of the call's request, which must fit the stream's window.
  // Waits for room in the connection's window.
  void SendData(uint32_t stream, const std::string& bytes) {
    for (size_t at = 0; at < bytes.size(); at += kPiece) {
      const std::string piece = bytes.substr(at, kPiece);
      while (window_ < static_cast<int64_t>(piece.size()) && !closed_) {
        ReadFrame();
      }
      if (closed_) return;
      window_ -= static_cast<int64_t>(piece.size());
      Send(Frame(kData, 0, stream, piece));
    }
  }

  // Sends a whole request; `message` is serialised as by gRPC.
  void SendRequest(uint32_t stream, const std::string& message) {
    SendData(stream, Prefix(message.size()) + message);
  }

  // The prefix of a message of `bytes` bytes.
  static std::string Prefix(size_t bytes) {
    return '\0' + Number(static_cast<uint32_t>(bytes), 4);
  }

  // Cancels the call.
  void Reset(uint32_t stream) {
    constexpr uint32_t kCancel = 8;
    Send(Frame(kReset, 0, stream, Number(kCancel, 4)));
  }

  // Waits until the server has read everything sent so far.
  void AwaitRead() {
    Send(Frame(kPing, 0, 0, std::string(8, 'x')));
    ++pings_;
    while (pings_ > 0 && !closed_) ReadFrame();
  }

 private:
  enum Type : char {
    kData = 0,
    kHeaders = 1,
    kReset = 3,
    kSettings = 4,
    kPing = 6,
    kWindow = 8
  };
  static constexpr char kAck = 1, kEndHeaders = 4;  // flags
  static constexpr size_t kPiece = 16 << 10;

  static std::string Number(uint32_t number, int bytes) {
    std::string text;
    while (bytes-- > 0) text += static_cast<char>(number >> (8 * bytes));
    return text;
  }
  static uint32_t NumberOf(const std::string& text) {
    uint32_t value = 0;
    for (const char c : text) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }
  static std::string Frame(Type type, char flags, uint32_t stream,
                           const std::string& payload) {
    return Number(static_cast<uint32_t>(payload.size()), 3) +
           static_cast<char>(type) + flags + Number(stream, 4) + payload;
  }
  static std::string Header(const std::string& name, const std::string& value) {
    return '\0' + Number(static_cast<uint32_t>(name.size()), 1) + name +
           Number(static_cast<uint32_t>(value.size()), 1) + value;
  }

  void Send(const std::string& bytes) {
    if (send(client_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size())) {
      closed_ = true;
    }
  }
  std::string Read(size_t bytes) {
    std::string text(bytes, '\0');
    if (bytes > 0 && recv(client_.fd(), text.data(), bytes, MSG_WAITALL) !=
                         static_cast<ssize_t>(bytes)) {
      closed_ = true;
    }
    return text;
  }
  void ReadFrame() {
    const std::string head = Read(9);
    const std::string payload = Read(NumberOf(head.substr(0, 3)));
    const char type = head[3], flags = head[4];
    if (type == kWindow && NumberOf(head.substr(5)) == 0) {
      window_ += NumberOf(payload);
    } else if (type == kSettings && flags == 0) {
      Send(Frame(kSettings, kAck, 0, ""));
    } else if (type == kPing && flags == 0) {
      Send(Frame(kPing, kAck, 0, payload));
    } else if (type == kPing) {
      --pings_;
    }
  }

  const SocketClient client_;
  uint32_t next_stream_ = 1;
  int64_t window_ = 65535;  // the connection's window for sending
  int pings_ = 0;           // sent and not yet answered
  bool closed_ = false;
};

}  // namespace millrace::testing
