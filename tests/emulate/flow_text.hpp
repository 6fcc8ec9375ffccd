// The text of a kernel that random_flow.hpp writes, line by line, as the reference reads it.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace demarc::emulate::test {

class FlowText {
 protected:
  enum class Kind {
    exit,
    ret,
    trap,
    branch,
    indexed,
    call,
    wait,
    kernel_parameter,
    load_parameter,
    store_parameter,
    load,
    store,
    atomic,
    wide,
    add64,
    compare,
    select,
    move,
    nothing,
    arithmetic
  };
  // A register or .param variable by its place, or a number, a place without an operand, a label.
  struct Operand {
    std::string text;
    int place = none;
    std::uint64_t number = 0;
    int address = none;  // of an operand in brackets: the register, with `number` behind it
  };
  static constexpr int none = -1;
  static constexpr int thread_number = -2;
  static constexpr int lane_number = -3;
  struct Line {
    int guard = none;
    bool negated = false;
    Kind kind = Kind::nothing;
    bool shared = false;
    std::string opcode;
    std::vector<Operand> operands;
  };
  static bool begins(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

  static std::string trimmed(const std::string& text) {
    std::size_t first = 0;
    std::size_t last = text.size();
    while (first < last && std::isspace(static_cast<unsigned char>(text[first])) != 0) ++first;
    while (last > first && std::isspace(static_cast<unsigned char>(text[last - 1])) != 0) --last;
    return text.substr(first, last - first);
  }

  static std::vector<std::string> parts(const std::string& text) {
    std::vector<std::string> out;
    std::string part;
    int depth = 0;
    for (const char c : text) {
      if (c == '(' || c == '{') ++depth;
      if (c == ')' || c == '}') --depth;
      if (c == ',' && depth == 0) {
        out.push_back(trimmed(part));
        part.clear();
      } else {
        part += c;
      }
    }
    if (!trimmed(part).empty()) out.push_back(trimmed(part));
    return out;
  }

  void read(const std::string& text) {
    std::string function;
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      std::string line = trimmed(text.substr(at, end - at));
      at = end + 1;
      if (line.rfind(".visible .entry", 0) == 0) function = "k";
      if (line.rfind(".func", 0) == 0) {
        const std::size_t name = line.find(')') + 2;
        function = line.substr(name, line.find('(', name) - name);
        parameters_[function] = names_in(line.substr(line.find('(', name)));
        results_[function] = names_in(line.substr(0, name));
        for (const std::string& one : parameters_[function]) place_of(one);
      }
      if (line == "{" && functions_.count(function) == 0) functions_[function] = lines_.size();
      if (line.empty() || line == "{" || line == "}" || line[0] == '.') continue;
      if (line.find(": .branchtargets ") != std::string::npos) {
        const std::size_t colon = line.find(':');
        targets_[line.substr(0, colon)] = parts(line.substr(colon + 17, line.size() - colon - 18));
        continue;
      }
      if (line.back() == ':') {
        labels_[line.substr(0, line.size() - 1)] = lines_.size();
        continue;
      }
      line.pop_back();  // the semicolon
      Line made;
      if (line[0] == '@') {
        const std::size_t space = line.find(' ');
        made.negated = line[1] == '!';
        made.guard = place_of(line.substr(made.negated ? 2 : 1, space - (made.negated ? 2 : 1)));
        line = trimmed(line.substr(space));
      }
      const std::size_t space = std::min(line.find(' '), line.size());
      made.opcode = line.substr(0, space);
      for (const std::string& part : parts(line.substr(space)))
        made.operands.push_back(operand_of(part));
      made.kind = kind_of(made.opcode);
      made.shared = made.opcode.find("shared") != std::string::npos;
      lines_.push_back(std::move(made));
    }
  }

  int place_of(const std::string& name) {
    return places_.emplace(name, static_cast<int>(places_.size())).first->second;
  }

  Operand operand_of(const std::string& text) {
    Operand made;
    made.text = text;
    if (text == "%tid.x") {
      made.place = thread_number;
    } else if (text == "%laneid") {
      made.place = lane_number;
    } else if (text == "area") {
      made.number = 0;
    } else if (text[0] == '[') {
      std::string inner = text.substr(1, text.size() - 2);
      if (const std::size_t plus = inner.find('+'); plus != std::string::npos) {
        made.number = std::stoull(inner.substr(plus + 1));
        inner = inner.substr(0, plus);
      }
      made.address = place_of(inner);
    } else if (std::isdigit(static_cast<unsigned char>(text[0])) != 0 || text[0] == '-') {
      made.number = static_cast<std::uint64_t>(std::stoll(text, nullptr, 0));
    } else if (const std::size_t bar = text.find('|'); bar != std::string::npos) {
      place_of(text.substr(0, bar));
      place_of(text.substr(bar + 1));
    } else if (text[0] == '(') {
      for (const std::string& part : parts(text.substr(1, text.size() - 2))) place_of(part);
    } else {
      made.place = place_of(text[0] == '!' ? text.substr(1) : text);
    }
    return made;
  }

  static Kind kind_of(const std::string& op) {
    static const std::vector<std::pair<const char*, Kind>> kinds{
        {"exit", Kind::exit},
        {"ret", Kind::ret},
        {"trap", Kind::trap},
        {"brx", Kind::indexed},
        {"bra", Kind::branch},
        {"call", Kind::call},
        {"bar", Kind::wait},
        {"shfl", Kind::wait},
        {"vote", Kind::wait},
        {"match", Kind::wait},
        {"redux", Kind::wait},
        {"ld.param.u64", Kind::kernel_parameter},
        {"ld.param", Kind::load_parameter},
        {"st.param", Kind::store_parameter},
        {"ld.", Kind::load},
        {"st.", Kind::store},
        {"atom.", Kind::atomic},
        {"mul.wide", Kind::wide},
        {"add.s64", Kind::add64},
        {"setp", Kind::compare},
        {"selp", Kind::select},
        {"mov", Kind::move},
        {"membar", Kind::nothing},
        {"nanosleep", Kind::nothing}};
    for (const auto& [word, kind] : kinds)
      if (begins(op, word)) return kind;
    return Kind::arithmetic;
  }

  static std::vector<std::string> names_in(const std::string& list) {
    std::vector<std::string> out;
    for (const std::string& part :
         parts(list.substr(list.find('(') + 1, list.rfind(')') - list.find('(') - 1)))
      out.push_back(part.substr(part.rfind(' ') + 1));
    return out;
  }
  std::vector<Line> lines_;
  std::map<std::string, int> places_;             // places of registers and variables, by name
  std::map<std::string, std::size_t> functions_;  // their first lines
  std::map<std::string, std::size_t> labels_;
  std::map<std::string, std::vector<std::string>> targets_;  // of brx.idx, by table
  std::map<std::string, std::vector<std::string>> parameters_;
  std::map<std::string, std::vector<std::string>> results_;
};

}  // namespace demarc::emulate::test
