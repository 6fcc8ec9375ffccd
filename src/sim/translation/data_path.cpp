// A translated line: L1 cache of the CU, L2 and DRAM of the GPU that owns it, the links in between.
#include <algorithm>

#include "system.hpp"

namespace demarc::sim::translation {
namespace {

constexpr std::uint32_t request_bytes = 12;
constexpr std::uint32_t reply_header_bytes = 4;

}  // namespace

void System::access_line(std::uint32_t slot, std::uint32_t line, Cycles when) {
  const bool store = accesses_[slot].instruction.store;
  Cu& cu = cus_[waves_[accesses_[slot].wave].cu];
  const std::uint32_t page = line >> page_shift_;
  const std::uint32_t owner = page_owner_[page];
  const std::uint32_t physical =
      (page_frame_[page] << page_shift_) | (line & ((1U << page_shift_) - 1));
  const bool local = owner == cu.gpu;
  const bool cached = local || settings_.remote_in_l1 != 0;
  if (!store && cached) {
    if (cu.l1.touch(line)) {
      complete_line(slot, when + 1);
      return;
    }
    cu.l1.insert(line);
  }
  GpuMemory& memory = gpus_[owner].memory;
  if (local) {
    complete_line(slot, store ? memory.write(physical, when + 1) : memory.read(physical, when + 1));
    return;
  }
  ++remote_lines_;
  const std::uint32_t bytes = store ? request_bytes + line_bytes : request_bytes;
  send({store ? MessageKind::write_line : MessageKind::read_line, cu.gpu, owner, 0,
        network_.flits(bytes), slot, physical},
       when + 1);
}

void System::complete_line(std::uint32_t slot, Cycles when) {
  Access& access = accesses_[slot];
  access.done = std::max(access.done, when);
  if (--access.pending == 0) at(std::max(access.done, now()), EventKind::access_done, slot);
}

void System::send(const Message& message, Cycles when) {
  const std::uint32_t slot = take_slot(messages_, free_messages_);
  messages_[slot] = message;
  at(when, EventKind::hop, slot);
}

void System::hop(std::uint32_t slot) {
  Message& message = messages_[slot];
  if (message.hop == network_.hops(message.from, message.to)) {
    const Message arrived = message;
    free_messages_.push_back(slot);
    receive(arrived);
    return;
  }
  const Cycles there = network_.cross(message.from, message.to, message.hop, message.flits, now());
  ++message.hop;
  at(there, EventKind::hop, slot);
}

void System::receive(const Message& message) {
  const std::uint32_t page = message.a;
  switch (message.kind) {
    case MessageKind::translate:
      ++iommu_accesses_;
      iommu_.arrive({message.from, page}, now());
      run_iommu();
      return;
    case MessageKind::page_data:
      page_arrived(message.to, page);
      [[fallthrough]];
    case MessageKind::translated:
      if (settings_.gmmu_fill == GmmuFill::any || page_owner_[page] == message.to)
        learn(message.to, page);
      fill_l2_tlb(message.to, page);
      return;
    case MessageKind::read_line: {
      const Cycles ready = gpus_[message.to].memory.read(message.b, now());
      send({MessageKind::line_data, message.to, message.from, 0,
            network_.flits(line_bytes + reply_header_bytes), message.a, message.b},
           ready);
      return;
    }
    case MessageKind::write_line: {
      const Cycles ready = gpus_[message.to].memory.write(message.b, now());
      send({MessageKind::write_done, message.to, message.from, 0, 1, message.a, message.b}, ready);
      return;
    }
    case MessageKind::line_data:
    case MessageKind::write_done:
      complete_line(message.a, now());
      return;
  }
}

}  // namespace demarc::sim::translation
