// The simulated machine: its parts, and one loop over their events.
#pragma once

#include <string>

#include "compute.hpp"
#include "migration.hpp"

namespace demarc::sim::translation {

class System {
 public:
  System(const Settings& settings, Architecture architecture, const Application& application,
         Watch watch = {});
  Result<Summary> run(const Progress& progress);

 private:
  void handle(const Event& event);
  void receive(const Message& message);
  // The GPU inside of which the event happens; no_gpu: none.
  [[nodiscard]] GpuIndex gpu_of(const Event& event) const;
  [[nodiscard]] Summary summarise() const;
  [[nodiscard]] std::string describe_queues() const;
  [[nodiscard]] std::string describe_waves() const;

  const Application& application_;
  Common common_;
  Links links_;
  PageTable table_;
  DataPath data_;
  TranslationPath translation_;
  Migration migration_;
  Compute compute_;
};

}  // namespace demarc::sim::translation
