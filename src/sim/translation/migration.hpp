// Moves pages from one GPU to another, one at a time in the whole system.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "translation_path.hpp"

namespace demarc::sim::translation {

class Migration : public Part {
 public:
  // A GPU that gives a page away stands still.
  struct Gpu {
    bool paused = false;
    std::vector<Event> deferred;  // while paused
  };
  struct Move {
    bool active = false;
    PageNumber page;
    GpuIndex from;
    GpuIndex to;
    std::uint32_t undrained = 0;  // GPUs
    std::uint32_t pieces = 0;     // not yet here
    std::string_view phase;
  };
  struct State {
    PerIndex<GpuIndex, Gpu> gpus;
    std::deque<WalkRequest> queue;
    Move move;
    std::uint64_t migrations = 0;
  };

  Migration(Common& common, Links& links, PageTable& table, DataPath& data,
            TranslationPath& translation);

  State state;

  [[nodiscard]] bool moves(PageNumber page) const;
  // An answer under way that a move has overtaken.
  [[nodiscard]] bool stale(GpuIndex gpu, PageNumber page) const;
  // The page moves to the GPU when it is its turn.
  void ask(GpuIndex gpu, PageNumber page);
  // What happens inside a GPU that stands still happens when it goes on.
  [[nodiscard]] bool defer(GpuIndex gpu, const Event& event);
  // A message of the move under way is there.
  void receive(const Message& message);
  // Event.
  void flushed(GpuIndex gpu);

 private:
  void start_next();
  void send(MessageKind kind, Node from, Node to, Cycles when, std::uint32_t bytes = 0);
  void send_to_all(MessageKind kind);
  void shoot_down(GpuIndex gpu);
  void resume(GpuIndex gpu);
  void end_move();

  Links& links_;
  PageTable& table_;
  DataPath& data_;
  TranslationPath& translation_;
};

}  // namespace demarc::sim::translation
