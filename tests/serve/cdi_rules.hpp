// What the public specification of the Container Device Interface, version 0.6.0, asks of a file:
// members, types and names. Each fault is named with its place; no fault: a runtime takes the file.
#pragma once

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "demarc/base/json.hpp"

namespace demarc::test {

class CdiRules {
 public:
  static std::vector<std::string> faults_of(const Json& file) {
    CdiRules rules;
    rules.look_at_file(file);
    return rules.faults_;
  }

 private:
  void look_at_file(const Json& file) {
    if (!members(file, "file", {"cdiVersion", "kind", "devices"},
                 {"annotations", "containerEdits"})) {
      return;
    }
    matches(file["cdiVersion"], "cdiVersion", R"((0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*))");
    const std::string part = "[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?";
    matches(file["kind"], "kind", part + "/" + part);
    if (file.contains("containerEdits")) look_at_edits(file["containerEdits"], "containerEdits");
    if (!file["devices"].is_array() || file["devices"].empty()) {
      return add("devices: an array with an item at least");
    }
    std::set<std::string> names;
    for (const Json& device : file["devices"]) {
      if (!members(device, "device", {"name", "containerEdits"}, {"annotations"})) continue;
      if (matches(device["name"], "name", "[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?") &&
          !names.insert(device["name"]).second) {
        add("name: given twice");
      }
      if (device["containerEdits"].empty()) add("containerEdits: empty");
      look_at_edits(device["containerEdits"], "containerEdits");
    }
  }
  // Device nodes and hooks are no edits of ours, and have no rules here.
  void look_at_edits(const Json& edits, const std::string& where) {
    if (!members(edits, where, {}, {"env", "mounts"})) return;
    for (const Json& variable : list(edits, "env")) {
      matches(variable, "env", "[A-Za-z_][A-Za-z0-9_]*=[^]*");
    }
    for (const Json& mount : list(edits, "mounts")) {
      if (!members(mount, "mount", {"hostPath", "containerPath"}, {"options", "type"})) continue;
      matches(mount["hostPath"], "hostPath", "/[^]+");
      matches(mount["containerPath"], "containerPath", "/[^]+");
      for (const Json& option : list(mount, "options")) matches(option, "option", "[a-z]+");
    }
  }

  void add(const std::string& fault) { faults_.push_back(fault); }
  Json list(const Json& object, const std::string& key) {
    if (!object.contains(key)) return Json::array();
    if (object[key].is_array()) return object[key];
    add(key + ": an array");
    return Json::array();
  }
  bool members(const Json& object, const std::string& where, const std::set<std::string>& needed,
               const std::set<std::string>& allowed) {
    if (!object.is_object()) {
      add(where + ": an object");
      return false;
    }
    bool whole = true;
    for (const std::string& key : needed) {
      if (object.contains(key)) continue;
      add(where + ": no " + key);
      whole = false;
    }
    for (const auto& item : object.items()) {
      if (needed.contains(item.key()) || allowed.contains(item.key())) continue;
      add(where + ": unknown " + item.key());
    }
    return whole;
  }
  bool matches(const Json& value, const std::string& where, const std::string& pattern) {
    if (value.is_string() && std::regex_match(value.get<std::string>(), std::regex(pattern))) {
      return true;
    }
    add(where + ": " + value.dump());
    return false;
  }

  std::vector<std::string> faults_;
};

}  // namespace demarc::test
