// Prints a module, an instruction or an operand as PTX text.
#include "demarc/ptx/printer.hpp"

#include "demarc/base/text.hpp"
#include "print/text_writer.hpp"

namespace demarc::ptx {
namespace {

std::string_view linkage_word(Linkage linkage) {
  switch (linkage) {
    case Linkage::none:
      return "";
    case Linkage::visible:
      return ".visible ";
    case Linkage::external:
      return ".extern ";
    case Linkage::weak:
      return ".weak ";
    case Linkage::common:
      return ".common ";
  }
  return "";
}

class ModulePrinter {
 public:
  explicit ModulePrinter(const Module& module) : module_(module) {
    out_.reserve(module.text ? module.text->size() + module.text->size() / 8 : 0);
  }

  std::string print() {
    append(out_, ".version {}.{}\n.target ", module_.version.major, module_.version.minor);
    for (std::size_t i = 0; i < module_.targets.size(); ++i) {
      append(out_, "{}{}", i == 0 ? "" : ", ", module_.targets[i]);
    }
    out_ += '\n';
    if (module_.states_address_size) append(out_, ".address_size {}\n", module_.address_size);
    out_ += '\n';
    for (const Item& item : module_.items) print_item(item);
    return std::move(out_);
  }

 private:
  void print_item(const Item& item) {
    switch (item.kind) {
      case ItemKind::function:
        print_function(module_.functions[item.index]);
        break;
      case ItemKind::variable:
        print_variable(module_.variables[item.index]);
        out_ += ";\n";
        break;
      case ItemKind::registers:
        print_registers(module_.registers[item.index]);
        break;
      case ItemKind::file:
        print_file(module_.files[item.index]);
        break;
      case ItemKind::section:
      case ItemKind::verbatim:
        out_ += module_.verbatim[item.index];
        out_ += '\n';
        break;
    }
  }

  void print_file(const SourceFile& file) {
    append(out_, ".file {} \"{}\"", file.number, file.path);
    if (!file.tail.empty()) append(out_, ", {}", file.tail);
    out_ += '\n';
  }

  void print_registers(const RegisterRange& range) {
    out_ += ".reg ";
    if (range.vector_width > 1) append(out_, ".v{} ", range.vector_width);
    append(out_, ".{} {}", info(range.type).text, range.name);
    if (range.is_range) append(out_, "<{}>", range.count);
    out_ += ";\n";
  }

  void print_variable(const Variable& variable) {
    out_ += linkage_word(variable.linkage);
    append(out_, ".{} ", name(variable.space));
    if (!variable.attributes.empty()) append(out_, "{} ", variable.attributes);
    if (variable.align != 0) append(out_, ".align {} ", variable.align);
    if (variable.vector_width > 1) append(out_, ".v{} ", variable.vector_width);
    append(out_, ".{} ", info(variable.type).text);
    if (variable.is_pointer) {
      out_ += ".ptr ";
      if (variable.pointee != StateSpace::none) append(out_, ".{} ", name(variable.pointee));
      if (variable.pointee_align != 0) append(out_, ".align {} ", variable.pointee_align);
    }
    out_ += variable.name;
    for (const std::uint64_t size : variable.dimensions) {
      if (size == 0) {
        out_ += "[]";
      } else {
        append(out_, "[{}]", size);
      }
    }
    if (!variable.initialiser.empty()) append(out_, " = {}", variable.initialiser);
  }

  void print_parameters(const std::vector<Variable>& parameters) {
    out_ += '(';
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (i > 0) out_ += ",\n\t";
      print_variable(parameters[i]);
    }
    out_ += ')';
  }

  void print_function(const Function& function) {
    append(out_, "{}{} ", linkage_word(function.linkage), function.is_entry ? ".entry" : ".func");
    if (!function.attributes.empty()) append(out_, "{} ", function.attributes);
    if (!function.results.empty()) {
      print_parameters(function.results);
      out_ += ' ';
    }
    out_ += function.name;
    if (!function.parameters.empty() || !function.is_entry) print_parameters(function.parameters);
    for (const PerformanceDirective& directive : function.directives) {
      append(out_, "\n.{}", directive.name);
      for (std::size_t i = 0; i < directive.values.size(); ++i) {
        append(out_, "{}{}", i == 0 ? " " : ", ", directive.values[i]);
      }
      if (!directive.text.empty()) append(out_, " {};", directive.text);
    }
    if (!function.has_body) {
      out_ += ";\n";
      return;
    }
    out_ += "\n{\n";
    for (const Statement& statement : function.body.statements)
      print_statement(function, statement);
    out_ += "}\n";
  }

  void print_statement(const Function& function, const Statement& statement) {
    const Body& body = function.body;
    switch (statement.kind) {
      case StatementKind::instruction:
        out_ += '\t';
        TextWriter(module_, function, out_).instruction(body.instructions[statement.index]);
        out_ += '\n';
        break;
      case StatementKind::label:
        out_ += body.labels[statement.index].name;
        out_ += ":\n";
        break;
      case StatementKind::registers:
        out_ += '\t';
        print_registers(body.registers[statement.index]);
        break;
      case StatementKind::variable:
        out_ += '\t';
        print_variable(body.variables[statement.index]);
        out_ += ";\n";
        break;
      case StatementKind::location:
        print_location(body.locations[statement.index]);
        break;
      case StatementKind::targets:
        print_targets(body, body.targets[statement.index]);
        break;
      case StatementKind::scope_begin:
        out_ += "\t{\n";
        break;
      case StatementKind::scope_end:
        out_ += "\t}\n";
        break;
      case StatementKind::verbatim:
        append(out_, "\t{}\n", body.verbatim[statement.index]);
        break;
    }
  }

  void print_location(const Location& location) {
    append(out_, "\t.loc {} {} {}{}\n", location.file, location.line, location.column,
           location.tail);
  }

  void print_targets(const Body& body, const TargetSet& set) {
    append(out_, "{}: ", set.name);
    if (set.kind == TargetSet::Kind::call_prototype) {
      append(out_, "{}\n", set.text);
      return;
    }
    const bool labels = set.kind == TargetSet::Kind::branch_targets;
    out_ += labels ? ".branchtargets" : ".calltargets";
    std::string_view separator = " ";
    for (const std::uint32_t target : set.targets) {
      if (target == no_index) continue;  // not declared; an error has been reported
      out_ += separator;
      out_ += labels ? body.labels[target].name : module_.functions[target].name;
      separator = ", ";
    }
    out_ += ";\n";
  }

  const Module& module_;
  std::string out_;
};

}  // namespace

std::string print(const Module& module) {
  return ModulePrinter(module).print();
}

std::string print(const Module& module, const Function& function, const Instruction& instruction) {
  std::string out;
  TextWriter(module, function, out).instruction(instruction);
  return out;
}

std::string print(const Module& module, const Function& function, const Operand& operand) {
  std::string out;
  TextWriter(module, function, out).operand(operand);
  return out;
}

}  // namespace demarc::ptx
