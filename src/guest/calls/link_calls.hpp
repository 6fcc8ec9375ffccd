// Links of a coloured program. What the driver links is machine code, in which no colour can be
// put: a link of one text of PTX gives that text back, and it is rewritten where it is loaded. All
// that has to be put together of parts is refused.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "calls/call_answer.hpp"

namespace demarc::cuda {

class LinkCalls {
 public:
  // `tell` is called with lines for the user.
  explicit LinkCalls(std::function<void(const std::string& line)> tell) : tell_(std::move(tell)) {}

  static std::span<const CallRow<LinkCalls>> rows();

 private:
  // Its address is the handle that the program has, whose image lasts as long.
  struct Link {
    std::string text;
    bool refused = false;  // an input of it
  };

  CallAnswer create(const DriverCall& call);
  CallAnswer add_data(const DriverCall& call);
  CallAnswer add_file(const DriverCall& call);
  CallAnswer complete(const DriverCall& call);
  CallAnswer destroy(const DriverCall& call);

  CuResult add(Link& link, int type, std::string text);
  CuResult refuse(Link& link, const std::string& why);
  [[nodiscard]] Link* find(const void* handle);  // under the lock

  std::function<void(const std::string& line)> tell_;
  std::mutex mutex_;  // of the links
  std::unordered_map<const void*, std::unique_ptr<Link>> links_;
};

}  // namespace demarc::cuda
