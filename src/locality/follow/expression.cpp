// Writes the address of an access as a sum of products of parameters and indices.
#include "follow/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "demarc/ptx/printer.hpp"

namespace demarc::locality {
namespace {

using ptx::NodeKind;
using ptx::Opcode;

// A product of atoms (ascending) and the sum of such products with their factors.
using Product = std::vector<std::uint32_t>;
using Sum = std::map<Product, std::int64_t>;

constexpr std::size_t max_terms = 64;

// As the card calculates: modulo 2^64.
std::int64_t wrapped_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t wrapped_product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

std::uint64_t magnitude(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return value < 0 ? 0 - bits : bits;
}

Sum constant_sum(std::int64_t value) {
  return value == 0 ? Sum{} : Sum{{{}, value}};
}

Sum added(Sum a, const Sum& b, std::int64_t factor) {
  for (const auto& [product, value] : b) {
    const auto it = a.try_emplace(product, 0).first;
    it->second = wrapped_sum(it->second, wrapped_product(factor, value));
    if (it->second == 0) a.erase(it);
  }
  return a;
}

std::optional<Sum> multiplied(const Sum& a, const Sum& b) {
  if (a.size() * b.size() > max_terms) return std::nullopt;
  Sum result;
  for (const auto& [p, x] : a) {
    for (const auto& [q, y] : b) {
      Product both = p;
      both.insert(both.end(), q.begin(), q.end());
      std::sort(both.begin(), both.end());
      result = added(std::move(result), Sum{{both, 1}}, wrapped_product(x, y));
    }
  }
  return result;
}

std::optional<std::int64_t> constant_of(const Sum& sum) {
  if (sum.empty()) return 0;
  if (sum.size() == 1 && sum.begin()->first.empty()) return sum.begin()->second;
  return std::nullopt;
}

const char* part_name(ptx::Selector selector) {
  switch (selector) {
    case ptx::Selector::x:
      return ".x";
    case ptx::Selector::y:
      return ".y";
    case ptx::Selector::z:
      return ".z";
    case ptx::Selector::w:
      return ".w";
    default:
      return "";
  }
}

class ExpressionWriter {
 public:
  ExpressionWriter(const ptx::Module& module, const ptx::Function& function,
                   const ptx::AddressTree& tree)
      : module_(module), function_(function), tree_(tree) {}

  std::string write() {
    if (tree_.nodes.empty()) return fmt::format("{}", tree_.offset);
    return printed_address(added(sum_of(0), constant_sum(tree_.offset), 1));
  }

 private:
  // The order in which atoms appear: parameters, threads, blocks, sizes, counters, the rest.
  enum Rank : std::uint32_t { parameter, thread, block, size, counter, other };

  Sum atom(Rank rank, const std::string& name) {
    const auto it = std::find(names_.begin(), names_.end(), name);
    const auto index = static_cast<std::uint32_t>(it - names_.begin());
    if (it == names_.end()) {
      names_.push_back(name);
      ranks_.push_back(rank);
    }
    return Sum{{{index}, 1}};
  }

  const ptx::Instruction& instruction_of(const ptx::TreeNode& node) const {
    return function_.body.instructions[node.instruction];
  }

  Sum sum_of(std::uint32_t index) {
    const ptx::TreeNode& node = tree_.nodes[index];
    switch (node.kind) {
      case NodeKind::parameter:
        return node.value == 0 ? atom(parameter, fmt::format("param{}", node.index))
                               : atom(parameter, fmt::format("param{}.{}", node.index, node.value));
      case NodeKind::immediate:
        return constant_sum(static_cast<std::int64_t>(node.value));
      case NodeKind::special:
        return special(node);
      case NodeKind::variable:
        return added(variable(node), constant_sum(static_cast<std::int64_t>(node.value)), 1);
      case NodeKind::loaded:
        return atom(other,
                    "load(" +
                        (node.children.empty()
                             ? std::string("?")
                             : printed_address(
                                   added(sum_of(node.children[0]),
                                         constant_sum(static_cast<std::int64_t>(node.value)), 1))) +
                        ")");
      case NodeKind::several:
        return merged(index);
      case NodeKind::recurrence:
        return atom(other, recurrence_name(node));
      case NodeKind::operation:
        return operation(node);
      case NodeKind::unknown:
        break;
    }
    return atom(other, node.reg == ptx::no_index ? "?" : register_name(node.reg));
  }

  std::string register_name(std::uint32_t reg) const { return function_.body.register_name(reg); }

  // Those in global memory are pointers as parameters are: tab + 4*tid.x.
  Sum variable(const ptx::TreeNode& node) {
    const bool global = node.base == ptx::Base::global && node.index < module_.variables.size() &&
                        module_.variables[node.index].space == ptx::StateSpace::global;
    return global ? atom(parameter, variable_name(node)) : atom(other, "&" + variable_name(node));
  }

  std::string variable_name(const ptx::TreeNode& node) const {
    if (node.base == ptx::Base::variable)
      return std::string(function_.body.variables[node.index].name);
    if (node.index < module_.variables.size())
      return std::string(module_.variables[node.index].name);
    return "?";
  }

  Sum special(const ptx::TreeNode& node) {
    const auto reg = static_cast<ptx::SpecialRegister>(node.index);
    std::string name(ptx::info(reg).name);
    if (!name.empty() && name.front() == '%') name.erase(0, 1);
    name += part_name(node.selector);
    const Rank rank = reg == ptx::SpecialRegister::tid     ? thread
                      : reg == ptx::SpecialRegister::ctaid ? block
                      : reg == ptx::SpecialRegister::ntid || reg == ptx::SpecialRegister::nctaid
                          ? size
                          : other;
    return atom(rank, name);
  }

  // A merge of definitions: a loop counter where one of them adds a constant to the merge itself.
  Sum merged(std::uint32_t index) {
    const ptx::TreeNode& node = tree_.nodes[index];
    if (!open_.insert(index).second) {
      circular_.insert(open_.begin(), open_.end());
      return choice(node);
    }
    Sum sum = start_and_steps(index);
    open_.erase(index);
    return circular_.erase(index) != 0 ? choice(node) : sum;
  }

  Sum start_and_steps(std::uint32_t index) {
    const ptx::TreeNode& node = tree_.nodes[index];
    std::optional<Sum> start;
    std::optional<Sum> step;
    for (const std::uint32_t child : node.children) {
      if (const auto advance = advance_of(index, child)) {
        if (step && *step != *advance) step.reset();
        step = advance;
      } else if (!start) {
        start = sum_of(child);
      } else if (*start != sum_of(child)) {
        return choice(node);
      }
    }
    if (!start || !step) return choice(node);
    const Sum count = counter_atom(node);
    const auto moved = multiplied(*step, count);
    return moved ? added(*start, *moved, 1) : choice(node);
  }

  Sum choice(const ptx::TreeNode& node) {
    return atom(other, node.reg == ptx::no_index ? "phi" : "phi(" + register_name(node.reg) + ")");
  }

  // What one trip adds, when `child` is (... the same register from the trip before) + constant.
  std::optional<Sum> advance_of(std::uint32_t merge, std::uint32_t child) {
    std::uint32_t at = child;
    Sum total;
    for (int depth = 0; depth < 64; ++depth) {
      const ptx::TreeNode& node = tree_.nodes[at];
      if (node.kind == NodeKind::recurrence) {
        const auto above = steps_above(merge, static_cast<std::uint32_t>(node.value));
        if (!above) return std::nullopt;
        return added(std::move(total), *above, 1);
      }
      if (node.kind == NodeKind::several) {
        // The merge seen again inside the loop: its recurrence is among the children.
        bool returns = false;
        for (const std::uint32_t inner : node.children)
          returns = returns || tree_.nodes[inner].kind == NodeKind::recurrence;
        if (returns) return total;
        return std::nullopt;
      }
      if (node.kind != NodeKind::operation || node.instruction == ptx::no_index)
        return std::nullopt;
      const Opcode opcode = instruction_of(node).opcode;
      if (opcode == Opcode::mov && node.children.size() == 1) {
        at = node.children[0];
        continue;
      }
      if ((opcode != Opcode::add && opcode != Opcode::sub) || node.children.size() != 2)
        return std::nullopt;
      const bool first_recurs = leads_back(node.children[0]);
      if (!first_recurs && (opcode == Opcode::sub || !leads_back(node.children[1])))
        return std::nullopt;
      const std::uint32_t moving = node.children[first_recurs ? 0 : 1];
      const Sum step = sum_of(node.children[first_recurs ? 1 : 0]);
      total = added(std::move(total), step, opcode == Opcode::sub ? -1 : 1);
      at = moving;
    }
    return std::nullopt;
  }

  // The recurrence may return to a node above the merge: what is added on the way from the merge
  // up to it belongs to the trip.
  std::optional<Sum> steps_above(std::uint32_t merge, std::uint32_t target) {
    Sum total;
    std::uint32_t below = merge;
    if (target > merge) return total;
    while (below != target) {
      const std::uint32_t at = tree_.nodes[below].parent;
      if (at == ptx::no_index) return total;
      const ptx::TreeNode& node = tree_.nodes[at];
      if (node.kind == NodeKind::operation && node.instruction != ptx::no_index) {
        const Opcode opcode = instruction_of(node).opcode;
        if (opcode == Opcode::add && node.children.size() == 2)
          total =
              added(std::move(total), sum_of(node.children[node.children[0] == below ? 1 : 0]), 1);
        else if (node.children.size() != 1)
          return std::nullopt;
      } else if (node.kind != NodeKind::several) {
        return std::nullopt;
      }
      below = at;
    }
    return total;
  }

  bool leads_back(std::uint32_t at) const {
    const ptx::TreeNode& node = tree_.nodes[at];
    if (node.kind == NodeKind::recurrence) return true;
    return std::any_of(node.children.begin(), node.children.end(),
                       [this](std::uint32_t child) { return leads_back(child); });
  }

  // One counter a loop, found by where the merged register's definitions stand.
  Sum counter_atom(const ptx::TreeNode& node) {
    const auto it = std::find(counters_.begin(), counters_.end(), node.reg);
    const auto number = static_cast<std::size_t>(it - counters_.begin()) + 1;
    if (it == counters_.end()) counters_.push_back(node.reg);
    return atom(counter, fmt::format("i{}", number));
  }

  std::string recurrence_name(const ptx::TreeNode& node) const {
    return node.reg == ptx::no_index ? "prev" : "prev(" + register_name(node.reg) + ")";
  }

  Sum operation(const ptx::TreeNode& node) {
    if (node.children.empty()) return atom(other, "?");
    const ptx::Instruction& instruction = instruction_of(node);
    std::vector<Sum> parts;
    for (const std::uint32_t child : node.children) parts.push_back(sum_of(child));
    const auto product = [&](const Sum& a, const Sum& b) {
      const auto result = multiplied(a, b);
      return result ? *result : opaque("*", {a, b});
    };
    switch (instruction.opcode) {
      case Opcode::mov:
      case Opcode::cvta:
      case Opcode::cvt:
      case Opcode::ld:
        return parts[0];
      case Opcode::add:
        return added(parts[0], parts.at(1), 1);
      case Opcode::sub:
        return added(parts[0], parts.at(1), -1);
      case Opcode::neg:
        return added({}, parts[0], -1);
      case Opcode::mul:
        if (module_.mnemonic(instruction).has(ptx::Modifier::hi)) break;
        return product(parts[0], parts.at(1));
      case Opcode::mad:
        if (module_.mnemonic(instruction).has(ptx::Modifier::hi)) break;
        return added(product(parts[0], parts.at(1)), parts.at(2), 1);
      case Opcode::shl:
        if (const auto by = constant_of(parts.at(1)); by && *by >= 0 && *by < 62)
          return product(parts[0], constant_sum(std::int64_t{1} << *by));
        return opaque("<<", parts);
      case Opcode::shr:
        return opaque(">>", parts);
      case Opcode::div:
        return opaque("/", parts);
      case Opcode::rem:
        return opaque("%", parts);
      case Opcode::and_:
        return opaque("&", parts);
      case Opcode::or_:
        return opaque("|", parts);
      case Opcode::xor_:
        return opaque("^", parts);
      default:
        break;
    }
    std::string arguments;
    for (const Sum& part : parts)
      arguments += (arguments.empty() ? "" : ", ") + printed(part, false);
    return atom(other, fmt::format("{}({})", ptx::info(instruction.opcode).name, arguments));
  }

  Sum opaque(std::string_view sign, const std::vector<Sum>& parts) {
    return atom(other, fmt::format("({} {} {})", printed(parts.at(0), true), sign,
                                   printed(parts.at(1), true)));
  }

  // ---- printing -------------------------------------------------------------------------------

  [[nodiscard]] std::vector<std::pair<Product, std::int64_t>> ordered(const Sum& sum) const {
    std::vector<std::pair<Product, std::int64_t>> terms(sum.begin(), sum.end());
    // Constants last; otherwise by the first atom's rank, then name.
    const auto key = [this](const std::pair<Product, std::int64_t>& term) {
      std::vector<std::pair<std::uint32_t, std::string>> result;
      for (const std::uint32_t a : term.first)
        result.emplace_back(ranks_[a] == parameter ? 9U : static_cast<std::uint32_t>(ranks_[a]),
                            names_[a]);
      std::sort(result.begin(), result.end());
      return result;
    };
    std::sort(terms.begin(), terms.end(), [&](const auto& a, const auto& b) {
      if (a.first.empty() != b.first.empty()) return b.first.empty();
      return key(a) < key(b);
    });
    return terms;
  }

  [[nodiscard]] std::string product_text(const Product& product) const {
    std::vector<std::uint32_t> atoms(product);
    std::sort(atoms.begin(), atoms.end(), [this](std::uint32_t a, std::uint32_t b) {
      return std::pair(ranks_[a], names_[a]) < std::pair(ranks_[b], names_[b]);
    });
    std::string out;
    for (const std::uint32_t a : atoms) out += (out.empty() ? "" : "*") + names_[a];
    return out;
  }

  // A sum without taking out factors.
  [[nodiscard]] std::string printed(const Sum& sum, bool parenthesised) const {
    if (sum.empty()) return "0";
    std::string out;
    for (const auto& [product, value] : ordered(sum)) {
      const std::uint64_t factor = magnitude(value);
      out += out.empty() ? (value < 0 ? "-" : "") : (value < 0 ? " - " : " + ");
      if (product.empty())
        out += fmt::format("{}", factor);
      else
        out += (factor == 1 ? "" : fmt::format("{}*", factor)) + product_text(product);
    }
    return parenthesised && sum.size() > 1 ? "(" + out + ")" : out;
  }

  // Pointers first, then what they are advanced by with its common factor in front.
  [[nodiscard]] std::string printed_address(const Sum& sum) const {
    Sum pointers;
    Sum rest;
    for (const auto& [product, value] : sum) {
      const bool pointer = value == 1 && product.size() == 1 && ranks_[product[0]] == parameter;
      (pointer ? pointers : rest)[product] = value;
    }
    std::string out;
    for (const auto& [product, value] : pointers)
      out += (out.empty() ? "" : " + ") + product_text(product);
    if (rest.empty()) return out.empty() ? "0" : out;
    std::uint64_t common = 0;
    for (const auto& [product, value] : rest) common = std::gcd(common, magnitude(value));
    const bool negative =
        std::all_of(rest.begin(), rest.end(), [](const auto& term) { return term.second < 0; });
    std::string moved;
    if (rest.size() > 1 && (common != 1 || negative)) {
      Sum inner;
      for (const auto& [product, value] : rest) {
        const std::uint64_t part = magnitude(value) / common;
        inner[product] = static_cast<std::int64_t>((value < 0) == negative ? part : 0 - part);
      }
      moved = fmt::format("({})", printed(inner, false));
      if (common != 1) moved = fmt::format("{}*{}", common, moved);
    } else {
      moved = printed(rest, false);
      if (!moved.empty() && moved.front() == '-' && !out.empty())
        return out + " - " + moved.substr(1);
      return out.empty() ? moved : out + " + " + moved;
    }
    if (out.empty()) return negative ? "-" + moved : moved;
    return out + (negative ? " - " : " + ") + moved;
  }

  const ptx::Module& module_;
  const ptx::Function& function_;
  const ptx::AddressTree& tree_;
  std::vector<std::string> names_;
  std::vector<Rank> ranks_;
  std::vector<std::uint32_t> counters_;
  std::set<std::uint32_t> open_;      // merges that are being written
  std::set<std::uint32_t> circular_;  // of these, those whose steps lead back to them
};

}  // namespace

std::string address_expression(const ptx::Module& module, const ptx::Function& function,
                               const ptx::AddressTree& tree) {
  return ExpressionWriter(module, function, tree).write();
}

}  // namespace demarc::locality
