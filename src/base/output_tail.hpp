// The last bytes of what comes out of a pipe, read by a thread so that the writer never waits.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

namespace demarc {

class OutputTail {
 public:
  OutputTail(int fd, std::size_t bytes);  // takes the descriptor
  ~OutputTail() { finish(); }
  OutputTail(const OutputTail&) = delete;
  OutputTail& operator=(const OutputTail&) = delete;

  // Takes what is in the pipe now and stops reading, though others may hold its other end.
  void finish();
  [[nodiscard]] std::string text();

 private:
  void read_all();
  bool take();

  int fd_;
  int wake_;
  std::size_t bytes_;
  std::mutex mutex_;
  std::string text_;
  std::thread thread_;
};

}  // namespace demarc
