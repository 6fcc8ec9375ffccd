// An executor whose lanes write down what they are asked, and fail where a test wants it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "demarc/study/executor.hpp"

namespace demarc::study {

struct Script {
  std::vector<std::string> log;                // "mask/1 start va", in order
  std::map<std::string, Error> faults;         // what such an entry answers
  std::map<std::string, std::string> remarks;  // of "mask/1"
  std::map<std::string, Outputs> outputs;      // outputs of "mask/0"; else those of the solo run
  std::vector<double> sample{100};
  // Where it is set: one time of the victim beside what runs in the other parts, null for nothing.
  std::function<double(const Workload& victim, const Workload* neighbour)> time;
  const Workload* running = nullptr;                // in the other parts
  NeighbourMeans means;                             // of neighbours
  std::string card;                                 // its name
  std::uint32_t sms = 0;                            // of the device
  std::map<std::string, std::uint64_t> bytes;       // bytes of a workload's buffers
  std::map<std::string, std::uint64_t> room;        // per part, by the mode's name
  std::string account = "scripted";                 // what stages say of themselves
  std::vector<std::string> rested;                  // idle parts
  Result<void> rest;                                // what they answer
  std::vector<std::vector<PlannedVisit>> prepared;  // the visits of each preparation
  bool computes_times = false;
  // Why lanes do not take a workload; empty: they do.
  std::function<std::string(const Workload& workload)> refuses;

  Result<void> say(const std::string& entry) {
    log.push_back(entry);
    const auto fault = faults.find(entry);
    if (fault == faults.end()) return {};
    return tl::unexpected(fault->second);
  }
};

class ScriptedLane : public Lane {
 public:
  ScriptedLane(Script& script, std::string name) : script_(script), name_(std::move(name)) {}
  Result<void> load(const Workload& workload) override {
    const std::string why = script_.refuses ? script_.refuses(workload) : "";
    if (!why.empty()) return missing_capability("{}", why);
    workload_ = workload;
    return say("load");
  }
  Result<void> unload() override { return say("unload"); }
  Result<std::vector<double>> sample(std::uint32_t count, double) override {
    DEMARC_CHECK(say("sample"));
    if (script_.time) {
      std::vector<double> times;
      for (std::uint32_t i = 0; i < count; ++i) {
        times.push_back(script_.time(workload_, script_.running));
      }
      return times;
    }
    if (script_.sample.empty()) return std::vector<double>{};
    return std::vector<double>(count, script_.sample.front());
  }
  Result<Outputs> outputs() override {
    DEMARC_CHECK(say("outputs"));
    const auto own = script_.outputs.find(name_);
    return own == script_.outputs.end() ? Outputs{7, true, {}} : own->second;
  }
  Result<void> start() override {
    script_.running = &workload_;
    return say("start");
  }
  Result<double> stop() override {
    script_.running = nullptr;
    DEMARC_CHECK(say("stop"));
    return 2.0;
  }
  Result<void> visit_begins() override { return say("begins"); }
  Result<void> visit_ended() override { return say("ended"); }
  bool computes_times() const override { return script_.computes_times; }
  std::string remark() const override {
    const auto own = script_.remarks.find(name_);
    return own == script_.remarks.end() ? "" : own->second;
  }
  Result<void> finish() override { return say("finish"); }

 private:
  Result<void> say(const std::string& what) {
    return script_.say(name_ + " " + what + (what == "finish" ? "" : " " + workload_.name));
  }
  Script& script_;
  std::string name_;
  Workload workload_;
};

class ScriptedStage : public Stage {
 public:
  ScriptedStage(Script& script, const std::string& name, std::uint32_t parts)
      : script_(script), name_(name), account_(script.account) {
    for (std::uint32_t i = 0; i < parts; ++i) {
      lanes_.emplace_back(script, name + "/" + std::to_string(i));
    }
  }
  std::uint32_t lanes() const override { return static_cast<std::uint32_t>(lanes_.size()); }
  Lane& lane(std::uint32_t index) override { return lanes_.at(index); }
  Result<void> rest(std::uint32_t lane) override {
    script_.rested.push_back(name_ + "/" + std::to_string(lane));
    return script_.rest;
  }
  std::string account() const override { return account_; }

 private:
  Script& script_;
  std::string name_;
  std::string account_;
  std::vector<ScriptedLane> lanes_;
};

class ScriptedExecutor : public Executor {
 public:
  explicit ScriptedExecutor(Script& script) : script_(script) {}
  DeviceContext context() const override {
    DeviceContext out;
    out.device = "scripted";
    out.name = script_.card;
    out.sms = script_.sms;
    return out;
  }
  Result<NeighbourMeans> neighbour_means(const Mode&, std::uint32_t) const override {
    return script_.means;
  }
  Result<WorkloadCode> code_of(const Workload& workload) const override {
    const auto known = script_.bytes.find(workload.name);
    if (known == script_.bytes.end()) return Executor::code_of(workload);
    WorkloadCode code;
    code.launch.buffers.resize(3);
    for (gpu::Buffer& buffer : code.launch.buffers) buffer.bytes = known->second / 2;
    code.launch.buffers.back().host = true;  // takes nothing of the card
    return code;
  }
  Result<std::uint64_t> bytes_of_part(const Mode& mode, std::uint32_t parts) const override {
    const auto known = script_.room.find(mode.name());
    if (known == script_.room.end()) return Executor::bytes_of_part(mode, parts);
    return known->second;
  }
  Result<void> prepare(const Plan&, const std::vector<PlannedVisit>& visits,
                       const Progress&) override {
    script_.prepared.push_back(visits);
    return {};
  }
  Result<std::unique_ptr<Stage>> whole() override {
    return std::make_unique<ScriptedStage>(script_, "whole", 1);
  }
  Result<std::unique_ptr<Stage>> divide(const Mode& mode, std::uint32_t parts) override {
    DEMARC_CHECK(script_.say("divide " + mode.name()));
    return std::make_unique<ScriptedStage>(script_, mode.name(), parts);
  }

 private:
  Script& script_;
};

}  // namespace demarc::study
