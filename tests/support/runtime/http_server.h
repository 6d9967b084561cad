// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A server of HTTP on this machine that does what a test says.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace AITER_ATTN_NAMESPACE::testing {

// One connection of a server, whose request was read.
class Connection {
 public:
  Connection(int socket, std::string request) : socket_(socket), request_(std::move(request)) {}
  const std::string& request() const { return request_; }
  bool asks_for(const std::string& path) const {
    return request_.rfind("GET " + path + " ", 0) == 0;
  }
  // Whether the client still reads.
  bool send(const std::string& bytes) const {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0;
  }
  void answer(const std::string& status, const std::string& body,
              const std::string& headers = "") const {
    send("HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n" + headers + "\r\n" + body);
  }
  // Until the client goes.
  void wait() const {
    char byte;
    while (::recv(socket_, &byte, 1, 0) > 0) {
    }
  }

 private:
  int socket_;
  std::string request_;
};

// A server on this machine, for one connection after the other.
class Server {
 public:
  using Handler = std::function<void(const Connection&)>;

  explicit Server(Handler handler) : handler_(std::move(handler)) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 16), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<std::string> requests() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    for (int socket; (socket = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      std::string request;
      char byte;
      while (request.find("\r\n\r\n") == request.npos && ::recv(socket, &byte, 1, 0) == 1) {
        request += byte;
      }
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        requests_.push_back(request);
      }
      handler_(Connection(socket, request));
      ::close(socket);
    }
  }

  Handler handler_;
  int socket_;
  int port_;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace AITER_ATTN_NAMESPACE::testing
