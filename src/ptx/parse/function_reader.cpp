// Parses functions: parameters, performance directives, scopes and bodies.
#include "parse/function_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace demarc::ptx {
namespace {

// Directives of a module that may stand behind a prototype without its semicolon.
bool begins_an_item(std::string_view word) {
  for (const std::string_view known :
       {"visible", "extern", "weak", "common", "entry", "func", "file", "section", "alias"}) {
    if (word == known) return true;
  }
  return find_state_space(word) != StateSpace::none;
}

}  // namespace

FunctionReader::FunctionReader(Reading& reading, DeclarationReader& declarations,
                               DebugReader& debug)
    : TextReader(reading),
      reading_(reading),
      declarations_(declarations),
      debug_(debug),
      operands_(reading),
      check_(reading),
      mnemonics_(reading.module.mnemonics),
      pool_(std::make_shared<Pool>(std::max<std::size_t>(
          4096, 2 * static_cast<std::size_t>(cursor_.end - cursor_.begin)))) {}

bool FunctionReader::parse_function(bool is_entry, Declarator declarator) {
  Function function;
  function.is_entry = is_entry;
  function.linkage = declarator.linkage;
  names_.open_scope();
  pending_.clear();
  pending_marks_.assign(1, 0);
  body_.registers.assign(module_.registers.begin(), module_.registers.end());
  body_.register_count = reading_.module_register_count;

  const auto parse_header = [&] {
    cursor_.skip();
    const char* first = cursor_.at;
    while (cursor_.is_next('.')) {
      const std::string_view word = word_after_dot();
      if (word != "attribute") return fail("'.attribute' or a name was expected, " + found());
      if (!expect('(', "'.attribute'")) return false;
      int depth = 1;
      while (depth > 0 && !cursor_.done() && !cursor_.is_next(';')) {
        depth += cursor_.is_next('(') ? 1 : (cursor_.is_next(')') ? -1 : 0);
        ++cursor_.at;
      }
      function.attributes = text_since(first);
      cursor_.skip();
    }
    if (!is_entry && cursor_.is_next('(') &&
        !parse_parameters(function.results, Base::result, is_entry)) {
      return false;
    }
    cursor_.skip();
    function.line = cursor_.line;
    function.name = cursor_.name();
    if (function.name.empty()) return fail("a function name was expected, " + found());
    cursor_.skip();
    if (cursor_.is_next('(') && !parse_parameters(function.parameters, Base::parameter, is_entry)) {
      return false;
    }
    return parse_performance_directives(function);
  };
  bool good = parse_header();
  if (std::string why = good ? why_no_header(function) : std::string(); !why.empty()) {
    good = fail_at(cursor_.offset_of(function.name.data()),
                   fmt::format("'{}': {}", excerpt(function.name, 60), why));
  }
  cursor_.skip();
  const auto index = static_cast<std::uint32_t>(module_.functions.size());
  const bool begins_body = good && cursor_.is_next('{');
  // ptxas takes a prototype of a function, not of a kernel, without a semicolon.
  const bool ends_openly = good && !is_entry && (cursor_.done() || cursor_.is_next('.'));
  const bool ends = begins_body || ends_openly || cursor_.is_next(';');
  if (good && !ends) {
    fail(fmt::format("';' or '{{' was expected after the header of '{}', {}",
                     excerpt(function.name, 60), found()));
  }
  if (!good || !ends) {
    names_.close_scope([](std::uint32_t, const Binding&) {});
    return false;
  }
  if (!ends_openly) ++cursor_.at;
  // The name belongs to the module's scope, but parameters are in an inner one already.
  names_.bind_outermost(names_.intern(function.name), Base::function, index);
  module_.items.push_back({ItemKind::function, index});
  module_.functions.push_back(std::move(function));
  if (begins_body) parse_body();
  names_.close_scope(
      [this](std::uint32_t name, const Binding& binding) { resolve_pending(name, binding); });
  if (begins_body) finish_body(module_.functions[index]);
  return true;
}

bool FunctionReader::parse_parameters(std::vector<Variable>& parameters, Base base, bool is_entry) {
  ++cursor_.at;
  if (cursor_.take(')')) return true;
  do {
    if (!parse_parameter(parameters, base, is_entry)) return false;
  } while (cursor_.take(','));
  return expect(')', "a parameter list");
}

bool FunctionReader::parse_parameter(std::vector<Variable>& parameters, Base base, bool is_entry) {
  cursor_.skip();
  const std::string_view word = word_after_dot();
  const StateSpace space = find_state_space(word);
  if (space != StateSpace::param && space != StateSpace::reg) {
    return fail("a parameter begins with '.param' or '.reg', " + found());
  }
  Variable variable;
  variable.space = space;
  variable.line = cursor_.line;
  if (!declarations_.parse_variable_type(variable) || !declarations_.parse_declarator(variable))
    return false;
  declarations_.check_variable(
      variable, is_entry ? DeclaredIn::kernel_parameters : DeclaredIn::function_parameters);
  if (space == StateSpace::reg) {
    const RegisterRange range{variable.name, 0, 1, variable.type, variable.vector_width, false};
    if (!declarations_.declare_register(range, body_.registers, body_.register_count)) return false;
    declarations_.bind_registers(body_.registers,
                                 static_cast<std::uint32_t>(body_.registers.size()) - 1);
  } else if (variable.name != "_") {
    declarations_.declare(variable.name, base, static_cast<std::uint32_t>(parameters.size()));
  }
  parameters.push_back(std::move(variable));
  return true;
}

bool FunctionReader::parse_performance_directives(Function& function) {
  while (true) {
    cursor_.skip();
    if (!cursor_.is_next('.')) return true;
    const Cursor before = cursor_;
    const char* start = cursor_.at;
    PerformanceDirective directive;
    directive.name = word_after_dot();
    if (!is_header_directive(directive.name)) {
      if (!function.is_entry && begins_an_item(directive.name)) {
        cursor_ = before;
        return true;
      }
      return fail_at(cursor_.offset_of(start),
                     fmt::format("'.{}' cannot stand in the header of '{}'",
                                 excerpt(directive.name, 40), excerpt(function.name, 60)));
    }
    if (directive.name == "pragma") {
      cursor_.skip();
      const char* first = cursor_.at;
      do {
        std::string_view ignored;
        if (!read_string(ignored)) return false;
        directive.text = text_since(first);
      } while (cursor_.take(','));
      if (!expect(';', "a pragma")) return false;
    } else if (takes_values(directive.name)) {
      do {
        std::uint64_t value = 0;
        if (!read_uint(std::numeric_limits<std::uint32_t>::max(), "a value", value)) return false;
        directive.values.push_back(value);
      } while (cursor_.take(','));
    }
    function.directives.push_back(std::move(directive));
  }
}

void FunctionReader::parse_body() {
  nested_ = 0;
  while (true) {
    cursor_.skip();
    if (cursor_.done()) {
      fail(fmt::format("'}}' is missing at the end of '{}'",
                       excerpt(module_.functions.back().name, 60)));
      break;
    }
    if (cursor_.is_next('}')) {
      ++cursor_.at;
      if (nested_ == 0) break;
      close_scope();
    } else if (cursor_.is_next('{')) {
      open_scope();
    } else if (cursor_.is_next(';')) {
      fail("a statement was expected, " + found());
      ++cursor_.at;
    } else if (!parse_statement()) {
      break;
    }
  }
  while (nested_ > 0) close_scope();
}

void FunctionReader::open_scope() {
  if (nested_ >= reading_.options.deepest_scope) {
    fail(fmt::format("more than {} nested scopes", reading_.options.deepest_scope));
    ++cursor_.at;
    skip_block();
    return;
  }
  ++cursor_.at;
  ++nested_;
  names_.open_scope();
  pending_marks_.push_back(static_cast<std::uint32_t>(pending_.size()));
  body_.statements.push_back({StatementKind::scope_begin, 0});
}

void FunctionReader::close_scope() {
  --nested_;
  names_.close_scope(
      [this](std::uint32_t name, const Binding& binding) { resolve_pending(name, binding); });
  pending_marks_.pop_back();
  body_.statements.push_back({StatementKind::scope_end, 0});
}

// Forward references made since the scope was opened mean what the scope defines. Each is looked at
// once: those of a name form a chain, newest first.
void FunctionReader::resolve_pending(std::uint32_t name, const Binding& binding) {
  if (binding.base != Base::label && binding.base != Base::targets) return;
  const std::uint32_t mark = pending_marks_.back();
  std::uint32_t& newest = names_.pending(name);
  while (newest != no_index && newest >= mark) {
    PendingReference& reference = pending_[newest];
    newest = reference.older;
    const bool is_operand = reference.kind == PendingReference::Kind::operand;
    const bool fits = (is_operand && binding.base == Base::label) ||
                      (binding.base == Base::label &&
                       body_.targets[reference.a].kind == TargetSet::Kind::branch_targets);
    if (reference.settled || !fits) continue;
    reference.settled = true;
    if (!reference.names_label) {
      fail_at(reference.offset, fmt::format("'{}' is a label, which only branches name",
                                            excerpt(names_.text(name), 60)));
    }
    if (is_operand) {
      body_.operands[reference.a].base = binding.base;
      body_.operands[reference.a].index = binding.index;
    } else {
      body_.targets[reference.a].targets[reference.b] = binding.index;
    }
  }
}

void FunctionReader::report_unresolved() {
  for (const PendingReference& reference : pending_) {
    names_.pending(reference.name) = no_index;
    if (reference.settled) continue;
    const std::string_view name = names_.text(reference.name);
    fail_at(reference.offset, fmt::format("'{}' is not declared", excerpt(name, 60)));
    if (reference.kind == PendingReference::Kind::operand) {
      body_.operands[reference.a].index = static_cast<std::uint32_t>(module_.names.size());
    }
    module_.names.push_back(name);
  }
  pending_.clear();
}

// Moves what was read into the module's pool, in vectors of just the size needed; body_ keeps its
// storage.
void FunctionReader::finish_body(Function& function) {
  report_unresolved();
  function.has_body = true;
  Body& kept = function.body;
  const auto keep = [this]<class T>(const PooledVector<T>& read) {
    return PooledVector<T>(read.begin(), read.end(), PoolAllocator<T>(pool_));
  };
  kept.statements = keep(body_.statements);
  kept.instructions = keep(body_.instructions);
  kept.operands = keep(body_.operands);
  kept.labels = keep(body_.labels);
  kept.locations = keep(body_.locations);
  kept.registers = body_.registers;
  kept.variables = body_.variables;
  kept.targets = body_.targets;
  kept.verbatim = body_.verbatim;
  kept.register_count = body_.register_count;
  body_.statements.clear();
  body_.instructions.clear();
  body_.operands.clear();
  body_.labels.clear();
  body_.registers.clear();
  body_.variables.clear();
  body_.locations.clear();
  body_.targets.clear();
  body_.verbatim.clear();
}

}  // namespace demarc::ptx
