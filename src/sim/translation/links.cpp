// Takes messages from link to link.
#include "links.hpp"

namespace demarc::sim::translation {

MessageSlot Links::keep(const Message& message) {
  const MessageSlot slot = messages.take();
  messages[slot] = message;
  return slot;
}

std::optional<Message> Links::hop(MessageSlot slot) {
  Message& message = messages[slot];
  if (is_there(message)) {
    messages.give_back(slot);
    return message;
  }
  const Cycles there = network.cross(message.from, message.to, message.hop, message.flits, now());
  ++message.hop;
  at<EventKind::hop>(there, slot);
  return std::nullopt;
}

}  // namespace demarc::sim::translation
