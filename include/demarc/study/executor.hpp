// What a study asks of a device. A real GPU, a simulated one and a planted model implement it. The
// runner in study.hpp knows nothing else. All calls come from one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/result.hpp"
#include "demarc/device/device.hpp"
#include "demarc/launch/launch.hpp"
#include "demarc/study/mode.hpp"
#include "demarc/study/neighbour_means.hpp"
#include "demarc/study/plan.hpp"

namespace demarc::study {

// Facts about the device that go into the result beside the figures.
struct DeviceContext {
  std::string device;  // "cuda:0", "planted:h100"
  std::string name;    // "NVIDIA H100 80GB HBM3"
  std::string driver;  // "580.159.04", empty for a model
  std::uint32_t sms = 0;
  bool measured = true;  // false: a model answered, these are not measurements
  std::vector<std::string> notes;
  std::vector<std::string> model;  // parameters of a simulated device, in words
  // How the executor was told to divide and to time, by the option that says it.
  std::map<std::string, std::string> settings = {};
};

// What a victim computed. `digest` is over all output bytes after a run from fresh inputs.
struct Outputs {
  std::uint64_t digest = 0;
  bool exact = true;     // false: the order of its sums varies, so digests of two runs may differ
  std::string mismatch;  // empty: the outputs equal the reference; else: where they first differ
};

// One part of the GPU under a mode, with at most one workload at a time.
class Lane {
 public:
  virtual ~Lane() = default;

  // Makes the workload resident. Loading the one that is loaded already costs nothing.
  [[nodiscard]] virtual Result<void> load(const Workload& workload) = 0;

  // Gives up the memory of all workloads that the lane keeps; load() comes before its next run.
  [[nodiscard]] virtual Result<void> unload() { return {}; }

  // Runs the loaded workload `count` times, one after the other. Returns the kernel time of each
  // run in nanoseconds, in order. May return fewer after `longest_seconds`, but at least one.
  [[nodiscard]] virtual Result<std::vector<double>> sample(std::uint32_t count,
                                                           double longest_seconds) = 0;

  // For each run of the last sample(), in order: nanoseconds from the beginning of the first kernel
  // to the end of the last one, including the gaps between launches. Empty if a run is one kernel
  // or if the lane cannot tell.
  [[nodiscard]] virtual std::vector<double> last_runs() const { return {}; }

  // Whether the times are computed. They then add up to StoppingRule::longest_seconds themselves,
  // because a clock would make the answer depend on the machine that computes them.
  [[nodiscard]] virtual bool computes_times() const { return false; }

  // Runs the workload once from fresh inputs and checks what it computed.
  [[nodiscard]] virtual Result<Outputs> outputs() = 0;

  // Runs the workload again and again until stop(); returns once the first run has begun. stop()
  // waits for the current run and returns the finished runs per second. It returns 0 if nothing was
  // started, and for a command, whose runs cannot be counted.
  [[nodiscard]] virtual Result<void> start() = 0;
  [[nodiscard]] virtual Result<double> stop() = 0;

  // Called before and after the timed runs of a victim, between start() and stop(). visit_ended()
  // returns an error if the lane can tell that its workload was not at work in between.
  [[nodiscard]] virtual Result<void> visit_begins() { return {}; }
  [[nodiscard]] virtual Result<void> visit_ended() { return {}; }
  // A remark on the figures of the visit that stop() ended, or nothing.
  [[nodiscard]] virtual std::string remark() const { return {}; }

  // Ends what the lane runs in, after its last use. An error casts doubt on all of its answers.
  [[nodiscard]] virtual Result<void> finish() { return {}; }
};

// A mode that is active on the device. lane(0) is the victim's part.
class Stage {
 public:
  virtual ~Stage() = default;
  [[nodiscard]] virtual std::uint32_t lanes() const = 0;
  [[nodiscard]] virtual Lane& lane(std::uint32_t index) = 0;
  // Called where the part stays idle while another is measured. A part that is a process gives up
  // its memory, so that other processes can have it.
  [[nodiscard]] virtual Result<void> rest(std::uint32_t /*lane*/) { return {}; }
  // A note of the stage on its figures ("part 0: SMs 0-65, colours 0").
  [[nodiscard]] virtual std::string account() const = 0;
};

// A workload in the form in which a device runs it.
struct WorkloadCode {
  gpu::Launch launch;
  std::string ptx;  // the module's text
};

class Executor {
 public:
  virtual ~Executor() = default;
  [[nodiscard]] virtual DeviceContext context() const = 0;
  // What is known without running anything (forecast.hpp): the device, and a workload at the size
  // that it has here. missing_capability, with the reason, if nothing is known.
  [[nodiscard]] virtual Result<gpu::Device> description() const;
  [[nodiscard]] virtual Result<WorkloadCode> code_of(const Workload& workload) const;
  // What a neighbour under the mode can be made of. As it stands: kernels on so much memory that
  // their first contents may pass through the host, without host memory in flight and without copy
  // engines; what the description says of the card goes in.
  [[nodiscard]] virtual Result<NeighbourMeans> neighbour_means(const Mode& mode,
                                                               std::uint32_t parts) const;
  // Bytes that a workload may have in one of `parts` under the mode; missing_capability, with the
  // reason, if that is not known before it is tried.
  [[nodiscard]] virtual Result<std::uint64_t> bytes_of_part(const Mode& mode,
                                                            std::uint32_t parts) const;
  // Called before these visits of a plan are made, so that work for all of them can begin at once.
  [[nodiscard]] virtual Result<void> prepare(const Plan& /*plan*/,
                                             const std::vector<PlannedVisit>& /*visits*/,
                                             const Progress& /*progress*/) {
    return {};
  }
  // Modes of a lower rank are run before those of a higher one; among equals the seed decides.
  [[nodiscard]] virtual int rank(const Mode& /*mode*/) const { return 0; }
  // The whole GPU as one lane. T_baseline is measured on it.
  [[nodiscard]] virtual Result<std::unique_ptr<Stage>> whole() = 0;
  // `parts` equal lanes under `mode`. missing_capability if the machine cannot do it.
  [[nodiscard]] virtual Result<std::unique_ptr<Stage>> divide(const Mode& mode,
                                                              std::uint32_t parts) = 0;
};

}  // namespace demarc::study
