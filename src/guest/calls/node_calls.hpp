// Copies and fills that a program adds to its graphs: those that touch the window become kernels of
// Demarc's (window_copies.hpp), whose nodes stand in the place of the program's.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>

#include "calls/call_answer.hpp"
#include "calls/copy_calls.hpp"
#include "calls/local_users.hpp"
#include "calls/module_calls.hpp"
#include "calls/window_copies.hpp"

namespace demarc::cuda {

class NodeCalls {
 public:
  // All that is referred to outlives the object.
  struct Means {
    const DriverApi& api;
    const CopyCalls& copies;
    const WindowCopies& kernels;
    ModuleCalls& modules;
    LocalUsers& locals;
    // A line for the user about what was refused.
    std::function<void(const std::string& line)> tell;
  };
  explicit NodeCalls(Means means) : means_(std::move(means)) {}

  static std::span<const CallRow<NodeCalls>> rows();

 private:
  // What a node does, as the program says it.
  using Work = std::variant<CuCopy3d, CuFillNode>;
  struct Node {
    CuGraph graph;
    Work work;
  };
  // The place of a node in its graph.
  struct NodePlace {
    CuGraphNode* node;
    CuGraph graph;
    const CuGraphNode* after;
    std::size_t count;
    CuContext context;
  };

  template <class Params>
  CallAnswer add(const DriverCall& call);
  template <class Parameters>
  CallAnswer add_any(const DriverCall& call);
  template <class Params>
  CallAnswer set(const DriverCall& call);
  template <class Params>
  CallAnswer set_launched(const DriverCall& call);
  template <class Params>
  CallAnswer get(const DriverCall& call);
  CallAnswer type(const DriverCall& call);
  CallAnswer destroy_graph(const DriverCall& call);
  CallAnswer destroy_node(const DriverCall& call);

  CallAnswer add(const NodePlace& place, const Work& work);
  // `stands`: the node is a kernel of Demarc's already.
  CallAnswer change(const Work& work, bool stands, const WindowCopies::Use& use);
  // Gives `use` the kernel that does the work. Nothing: it does not touch the window.
  CallAnswer make(const Work& work, const WindowCopies::Use& use) const;
  CallAnswer make_copy(const CuCopy3d& params, const WindowCopies::Use& use) const;
  CallAnswer make_fill(const CuFillNode& params, const WindowCopies::Use& use) const;
  [[nodiscard]] bool reach_host(WindowCopies::Side& place, std::uint64_t bytes) const;
  [[nodiscard]] CuResult refuse(const char* why) const;
  [[nodiscard]] std::optional<Node> find(CuGraphNode node) const;

  Means means_;
  mutable std::mutex mutex_;  // of the table
  std::unordered_map<CuGraphNode, Node> nodes_;
};

}  // namespace demarc::cuda
