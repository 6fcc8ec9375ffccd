// Traces the address of an access back to parameters, indices and loads, as a tree.
#include "demarc/ptx/address_tree.hpp"

#include "demarc/base/json.hpp"
#include "demarc/ptx/printer.hpp"

namespace demarc::ptx {
namespace {

// Groups whose results are a function of the source operands alone.
bool is_traced(OpcodeGroup group) {
  return group == OpcodeGroup::arithmetic || group == OpcodeGroup::compare ||
         group == OpcodeGroup::logic || group == OpcodeGroup::move ||
         group == OpcodeGroup::convert || group == OpcodeGroup::video;
}

bool has_verbatim(const Body& body, const Instruction& instruction) {
  for (const Operand& operand : body.operands_of(instruction)) {
    if (operand.kind == OperandKind::verbatim) return true;
  }
  return false;
}

// Among the copies cp.async [to], [from] the one that is read.
const Operand* address_of(const Body& body, const Instruction& instruction) {
  bool skip = instruction.opcode == Opcode::cp_async;
  for (const Operand& operand : body.operands_of(instruction)) {
    if (operand.kind != OperandKind::address) continue;
    if (!skip) return &operand;
    skip = false;
  }
  return nullptr;
}

// Grows the tree breadth first: nodes wait, in the order of the list, for their definition.
class TreeBuilder {
 public:
  TreeBuilder(const Function& function, const DefUse& def_use, const TreeOptions& options)
      : body_(function.body), def_use_(def_use), options_(options) {}

  AddressTree build(std::uint32_t instruction, const Operand& address) {
    tree_.instruction = instruction;
    if (address.base == Base::reg) {
      tree_.offset = address.offset();
      wait_for(no_index, address.index, instruction);
    } else {
      add_operand(no_index, address, instruction);
    }
    run();
    return std::move(tree_);
  }

 private:
  struct Waiting {
    std::uint32_t definition = no_index;  // known already, as for a child of `several`
    std::uint32_t use = no_index;         // where the register is read; no_index: nothing to do
  };

  std::uint32_t add(std::uint32_t parent, NodeKind kind) {
    const auto index = static_cast<std::uint32_t>(tree_.nodes.size());
    TreeNode node;
    node.kind = kind;
    node.parent = parent;
    tree_.nodes.push_back(std::move(node));
    waiting_.emplace_back();
    if (parent != no_index) tree_.nodes[parent].children.push_back(index);
    return index;
  }

  void wait_for(std::uint32_t parent, std::uint32_t reg, std::uint32_t use) {
    const std::uint32_t node = add(parent, NodeKind::unknown);
    tree_.nodes[node].reg = reg;
    waiting_[node].use = use;
  }

  void run() {
    for (std::uint32_t node = 0; node < tree_.nodes.size(); ++node) {
      if (tree_.nodes.size() >= options_.max_nodes) {
        tree_.truncated = tree_.truncated || waiting_[node].use != no_index;
        continue;
      }
      if (waiting_[node].definition != no_index) {
        define(node, waiting_[node].definition);
      } else if (waiting_[node].use != no_index) {
        find_definition(node);
      }
    }
  }

  void find_definition(std::uint32_t node) {
    const std::uint32_t reg = tree_.nodes[node].reg;
    const auto reaching = def_use_.reaching(reg, waiting_[node].use);
    if (reaching.definitions.empty()) return;
    if (reaching.definitions.size() == 1) {
      define(node, reaching.definitions[0]);
      return;
    }
    tree_.nodes[node].kind = NodeKind::several;
    for (const std::uint32_t definition : reaching.definitions) {
      const std::uint32_t child = add(node, NodeKind::unknown);
      tree_.nodes[child].reg = reg;
      waiting_[child] = {definition, definition};
    }
  }

  void define(std::uint32_t node, std::uint32_t definition) {
    tree_.nodes[node].instruction = definition;
    for (std::uint32_t above = tree_.nodes[node].parent; above != no_index;
         above = tree_.nodes[above].parent) {
      const TreeNode& ancestor = tree_.nodes[above];
      if (ancestor.instruction == definition && ancestor.reg == tree_.nodes[node].reg &&
          ancestor.kind != NodeKind::several) {
        tree_.nodes[node].kind = NodeKind::recurrence;
        tree_.nodes[node].value = above;
        return;
      }
    }
    const Instruction& instruction = body_.instructions[definition];
    const OpcodeInfo& row = info(instruction.opcode);
    if (has_verbatim(body_, instruction)) return;
    if (row.group == OpcodeGroup::load) {
      define_load(node, definition);
    } else if (is_traced(row.group)) {
      tree_.nodes[node].kind = NodeKind::operation;
      const auto operands = body_.operands_of(instruction);
      for (std::size_t i = row.written; i < operands.size(); ++i) {
        add_operand(node, operands[i], definition);
      }
    }
  }

  void define_load(std::uint32_t node, std::uint32_t definition) {
    const Operand* address = address_of(body_, body_.instructions[definition]);
    if (address == nullptr) return;
    if (address->base == Base::parameter) {
      tree_.nodes[node].kind = NodeKind::operation;
    } else {
      tree_.nodes[node].kind = NodeKind::loaded;
      if (address->base == Base::reg) tree_.nodes[node].value = address->value;
    }
    add_operand(node, *address, definition);
  }

  // What an operand of the instruction `use` is, as a child of `parent`.
  void add_operand(std::uint32_t parent, const Operand& operand, std::uint32_t use) {
    if (operand.has_children()) {
      for (const Operand& child : body_.children(operand)) add_operand(parent, child, use);
      return;
    }
    switch (operand.kind) {
      case OperandKind::reg:
        wait_for(parent, operand.index, use);
        return;
      case OperandKind::special:
        copy(add(parent, NodeKind::special), operand);
        return;
      case OperandKind::immediate:
        copy(add(parent, NodeKind::immediate), operand);
        return;
      case OperandKind::address:
      case OperandKind::symbol:
        break;
      default:
        add(parent, NodeKind::unknown);
        return;
    }
    switch (operand.base) {
      case Base::reg:
        wait_for(parent, operand.index, use);
        return;
      case Base::none:
        copy(add(parent, NodeKind::immediate), operand);
        return;
      case Base::parameter:
        copy(add(parent, NodeKind::parameter), operand);
        return;
      case Base::variable:
      case Base::global:
        copy(add(parent, NodeKind::variable), operand);
        return;
      default:
        copy(add(parent, NodeKind::unknown), operand);
        return;
    }
  }

  void copy(std::uint32_t node, const Operand& operand) {
    TreeNode& to = tree_.nodes[node];
    to.base = operand.base;
    to.index = operand.index;
    to.selector = operand.selector;
    to.immediate = operand.immediate;
    to.value = operand.value;
  }

  const Body& body_;
  const DefUse& def_use_;
  TreeOptions options_;
  AddressTree tree_;
  std::vector<Waiting> waiting_;  // by node
};

Operand operand_of(const TreeNode& node) {
  Operand operand;
  operand.kind = node.kind == NodeKind::special     ? OperandKind::special
                 : node.kind == NodeKind::immediate ? OperandKind::immediate
                 : node.kind == NodeKind::parameter ? OperandKind::address
                                                    : OperandKind::symbol;
  operand.base = node.base;
  operand.index = node.index;
  operand.selector = node.selector;
  operand.immediate = node.immediate;
  operand.value = node.value;
  return operand;
}

Json node_to_json(const Module& module, const Function& function, const TreeNode& node) {
  const Body& body = function.body;
  Json json = Json::object();
  if (node.reg != no_index) {
    json["reg"] = body.register_name(node.reg);
  } else if (node.kind == NodeKind::unknown && node.base == Base::none) {
    json["reg"] = "";
  } else {
    json["reg"] = print(module, function, operand_of(node));
  }
  if (node.kind == NodeKind::several) {
    json["opcode"] = "several";
  } else if (node.kind == NodeKind::recurrence) {
    json["opcode"] = "recurrence";
    json["of"] = node.value;
  } else if (node.instruction != no_index) {
    json["opcode"] = module.mnemonic(body.instructions[node.instruction]).text;
  } else {
    json["opcode"] = node.kind == NodeKind::unknown && node.reg != no_index ? "unknown" : "";
  }
  json["parent"] = node.parent == no_index ? -1 : static_cast<std::int64_t>(node.parent);
  return json;
}

}  // namespace

AddressTree trace_address(const Function& function, const DefUse& def_use,
                          std::uint32_t instruction, const TreeOptions& options) {
  const Operand* address = address_of(function.body, function.body.instructions[instruction]);
  TreeBuilder builder(function, def_use, options);
  return builder.build(instruction, address != nullptr ? *address : Operand{});
}

std::vector<std::uint32_t> global_loads(const Module& module, const Function& function,
                                        bool generic) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < function.body.instructions.size(); ++i) {
    const Instruction& instruction = function.body.instructions[i];
    if (info(instruction.opcode).group != OpcodeGroup::load) continue;
    const StateSpace space = module.mnemonic(instruction).space;
    if (space == StateSpace::global || (generic && space == StateSpace::none)) found.push_back(i);
  }
  return found;
}

std::string trees_to_json(const Module& module, const Function& function) {
  const Cfg cfg(function.body);
  const DefUse def_use(function.body, cfg);
  Json loads = Json::array();
  for (const std::uint32_t load : global_loads(module, function)) {
    const Instruction& instruction = function.body.instructions[load];
    const AddressTree tree = trace_address(function, def_use, load);
    Json nodes = Json::array();
    for (const TreeNode& node : tree.nodes) nodes.push_back(node_to_json(module, function, node));
    loads.push_back({{"instruction", print(module, function, instruction)},
                     {"line", instruction.line},
                     {"offset", tree.offset},
                     {"truncated", tree.truncated},
                     {"tree", std::move(nodes)}});
  }
  Json document = {
      {"schema", "demarc.ptx.tree/1"}, {"kernel", function.name}, {"loads", std::move(loads)}};
  Json not_understood = Json::array();
  for (const Instruction& instruction : function.body.instructions)
    if (has_verbatim(function.body, instruction))
      not_understood.push_back(
          {{"line", instruction.line}, {"text", std::string(module.text_of(instruction))}});
  if (!not_understood.empty()) document["not_understood"] = std::move(not_understood);
  return json_text(document, 2) + "\n";
}

}  // namespace demarc::ptx
