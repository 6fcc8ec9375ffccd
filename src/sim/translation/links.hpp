// Messages between the GPUs and the CPU, on their way over the links.
#pragma once

#include <cstdint>
#include <optional>

#include "gpu_memory.hpp"
#include "network.hpp"
#include "part.hpp"
#include "slot_pool.hpp"

namespace demarc::sim::translation {

enum class MessageKind : std::uint8_t {
  // For a page.
  translate,   // GPU -> CPU
  translated,  // CPU -> GPU
  page_data,   // CPU -> GPU, with the translation
  // Of a line.
  read_line,   // GPU -> owner
  write_line,  // GPU -> owner
  line_data,   // owner -> GPU
  write_done,  // owner -> GPU
  // Of the one migration under way, in order.
  drain,          // CPU -> every GPU
  drained,        // GPU -> CPU
  shoot_down,     // CPU -> owner
  shot_down,      // owner -> CPU
  fetch_page,     // CPU -> new owner
  fetch_piece,    // new owner -> owner
  piece,          // owner -> new owner
  page_fetched,   // new owner -> CPU
  resume,         // CPU -> owner
  resumed,        // owner -> CPU
  release_lines,  // CPU -> every GPU
};
struct RemoteLine {
  AccessSlot access = {};
  FrameLine of_owner = {};   // in the owner's memory
  LineNumber of_space = {};  // and in the application's space
};
// Half of a cache line of the host's: many thousands may be under way.
struct alignas(32) Message {
  MessageKind kind = MessageKind::translate;
  Node from = {};
  Node to = {};
  std::uint32_t flits = 1;
  PageNumber page = {};
  bool moved_here = false;   // translated: the page has just come to the receiver
  bool joins = false;        // a line alone: the message before it has the header of both
  std::uint8_t sectors = 0;  // how many a line brings
  RemoteLine line = {};
  std::uint8_t hop = 0;  // links that are behind it
};
static_assert(sizeof(Message) == 32);

class Links : public Part {
 public:
  explicit Links(Common& common) : Part(common), network(common.settings) {}

  Network network;
  SlotPool<MessageSlot, Message> messages;

  void send(const Message& message, Cycles when) { at<EventKind::hop>(when, keep(message)); }
  // A message that waits for its first link.
  [[nodiscard]] MessageSlot keep(const Message& message);
  void go_on(MessageSlot slot) { at<EventKind::hop>(now(), slot); }
  [[nodiscard]] bool is_there(const Message& message) const {
    return message.hop == network.hops(message.from, message.to);
  }
  // Event. Gives the message if it is there.
  [[nodiscard]] std::optional<Message> hop(MessageSlot slot);
};

}  // namespace demarc::sim::translation
