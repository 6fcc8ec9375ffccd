// Kernels with local variables. Those of a module share one block of memory for them, so that no
// two may run at once: each launch follows the one before it. A graph may have such kernels of any
// module: once one was captured, launches of graphs, and of the modules that were captured, all
// follow each other. Within a capture all such kernels do.
//
// Nodes that have an order must keep it (graph_calls.hpp refuses what would take it from them), and
// no kernel with local variables becomes a node in another way than by a capture into a new graph.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "calls/launch_order.hpp"
#include "calls/stream_capture.hpp"

namespace demarc::cuda {

// By several threads at a time.
class LocalUsers {
 public:
  using Work = LaunchOrder::Work;
  // Makes room in the module's block. The argument waits on the host until no kernel uses the
  // block; none begins to before the room is made.
  using MakeRoom = std::function<CuResult(const Work& wait)>;
  enum class Into { new_graph, graph_that_is };

  struct ModuleOrder {
    std::mutex mutex;  // of its order
    LaunchOrder order;
    std::atomic<bool> captured{false};  // it has the order of all such modules
  };

  // `api` outlives the object; `tell` is called with lines for the user.
  LocalUsers(const DriverApi& api, std::function<void(const std::string& line)> tell)
      : api_(api), tell_(std::move(tell)) {}

  // `work` launches a kernel of the module.
  CuResult launch(ModuleOrder& module, CuStream stream, const MakeRoom& make_room,
                  const Work& work);
  // `work` launches a graph. Not needed before one was captured that may have such kernels.
  CuResult launch_graph(CuStream stream, const Work& work);
  [[nodiscard]] bool are_in_graphs() const { return in_graphs_.load(); }

  // True, and the user is told, where a function that could take nodes their order is refused.
  [[nodiscard]] bool keep_order(std::string_view function) const;

  void capture_begins(Into into);
  [[nodiscard]] bool any_capture() const { return any_capture_.load(); }
  // `work` ends the capture that the stream is in.
  CuResult end_capture(CuStream stream, const Work& work);

  // For a module that goes, and never was captured.
  void forget(ModuleOrder& module) const { module.order.forget(api_); }
  // Before a context goes, with what it has of events.
  void forget_context();

 private:
  CuResult find_capture(CuStream stream, StreamCapture& capture);
  void join(ModuleOrder& module);
  std::unique_lock<std::mutex> locked(ModuleOrder& module);

  const DriverApi& api_;
  std::function<void(const std::string& line)> tell_;
  std::atomic<bool> in_graphs_{false};
  std::atomic<bool> any_capture_{false};
  std::atomic<bool> into_graphs_{false};
  std::mutex mutex_;  // of the orders below
  LaunchOrder order_;
  std::map<std::uint64_t, LaunchOrder> captures_;
};

}  // namespace demarc::cuda
