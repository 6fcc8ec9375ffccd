// Records the steps of emulated kernels, or emulates them while the simulation runs.
#include "demarc/sim/memory/emulated.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "demarc/base/files.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::sim::memory {
namespace {

emulate::Options plain_run(unsigned threads) {
  emulate::Options options;
  options.check_uninitialised = false;
  options.check_races = false;
  options.threads = threads;
  return options;
}

Result<void> no_findings(const emulate::Outcome& outcome, const gpu::Launch& launch) {
  if (outcome.findings.empty()) return {};
  return check_failed("{}", emulate::describe(outcome.findings.front(), launch.ptx));
}

// Keeps what a StepSink makes of all kernels from `first` on.
struct Recorder {
  const std::vector<gpu::KernelLaunch>* kernels = nullptr;  // kernels of the launch, if it is one
  std::size_t first = 0;
  std::size_t begun = 0;
  std::shared_ptr<PackedLaunch> launch = std::make_shared<PackedLaunch>();
  StepSink sink{[this](const KernelShape& shape) -> Result<void> {
                  if (++begun <= first) return {};
                  launch->kernels.push_back({shape, {}});
                  if (kernels != nullptr) {
                    launch->kernels.back().shape.registers = kernels->at(begun - 1).registers;
                  }
                  return {};
                },
                [this](std::shared_ptr<const PackedBlock> block) -> Result<void> {
                  if (begun > first) launch->kernels.back().blocks.push_back(std::move(block));
                  return {};
                }};
};

// One emulation in a thread, its blocks in a bounded queue. An entry without block is a kernel.
class Emulation {
 public:
  Emulation(std::shared_ptr<const ptx::Module> module, const gpu::Launch& launch,
            std::size_t blocks_ahead)
      : blocks_ahead_(blocks_ahead),
        thread_([this, module = std::move(module), &launch] { work(*module, launch); }) {}
  Emulation(const Emulation&) = delete;
  Emulation& operator=(const Emulation&) = delete;
  ~Emulation() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  struct Entry {
    KernelShape shape;
    std::shared_ptr<const PackedBlock> block;
  };
  // Nothing: the launch is over.
  Result<std::optional<Entry>> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !entries_.empty() || ended_; });
    if (entries_.empty()) {
      if (error_) return tl::unexpected(*error_);
      return std::optional<Entry>();
    }
    std::optional<Entry> entry = std::move(entries_.front());
    entries_.pop_front();
    changed_.notify_all();
    return entry;
  }

 private:
  Result<void> put(Entry entry) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return entries_.size() < blocks_ahead_ || stop_; });
    if (stop_) return invalid_input("the simulation has ended");
    entries_.push_back(std::move(entry));
    changed_.notify_all();
    return {};
  }
  void work(const ptx::Module& module, const gpu::Launch& launch) {
    std::size_t kernel = 0;
    StepSink sink(
        [this, &launch, &kernel](KernelShape shape) {
          shape.registers = launch.kernels.at(kernel++).registers;
          return put({shape, nullptr});
        },
        [this](std::shared_ptr<const PackedBlock> block) {
          return put({{}, std::move(block)});
        });
    const auto outcome = emulate::run(module, launch, plain_run(1), &sink);
    Result<void> checked =
        outcome ? no_findings(*outcome, launch) : Result<void>(tl::unexpected(outcome.error()));
    const std::lock_guard lock(mutex_);
    if (!checked) error_ = checked.error();
    ended_ = true;
    changed_.notify_all();
  }

  std::size_t blocks_ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  bool ended_ = false;
  bool stop_ = false;
  std::optional<Error> error_;
  std::thread thread_;  // last: it uses the others
};

class EmulatedSource final : public Source {
 public:
  EmulatedSource(std::shared_ptr<const ptx::Module> module, gpu::Launch launch,
                 std::uint32_t blocks_ahead)
      : module_(std::move(module)), launch_(std::move(launch)), blocks_ahead_(blocks_ahead) {}

  Result<void> restart() override {
    emulation_.reset();
    emulation_ = std::make_unique<Emulation>(module_, launch_, blocks_ahead_);
    return {};
  }
  Result<bool> next_kernel(KernelShape& shape) override {
    DEMARC_TRY(auto entry, emulation_->take());
    if (!entry) return false;
    shape = entry->shape;
    return true;
  }
  Result<std::unique_ptr<BlockWork>> next_block() override {
    DEMARC_TRY(auto entry, emulation_->take());
    if (!entry || !entry->block) return invalid_input("{}: a block is missing", launch_.name);
    return replay_block(std::move(entry->block));
  }

 private:
  std::shared_ptr<const ptx::Module> module_;
  gpu::Launch launch_;
  std::uint32_t blocks_ahead_;
  std::unique_ptr<Emulation> emulation_;
};

}  // namespace

Result<RecordedLaunch> record_launch(const ptx::Module& module, const gpu::Launch& launch,
                                     unsigned threads, KernelWindow window) {
  gpu::Launch until = launch;
  const std::size_t kernels = until.kernels.size();
  if (window.first >= kernels) {
    return invalid_input("{}: it has {} kernels, so there is none with number {} or later",
                         launch.name, kernels, window.first);
  }
  until.kernels.resize(window.first + std::min(window.count, kernels - window.first));
  Recorder recorder{&until.kernels, window.first};
  RecordedLaunch recorded;
  DEMARC_TRY(recorded.outcome, emulate::run(module, until, plain_run(threads), &recorder.sink));
  DEMARC_CHECK(no_findings(recorded.outcome, launch));
  recorded.launch = recorder.launch;
  return recorded;
}

std::unique_ptr<Source> emulate_on_the_fly(std::shared_ptr<const ptx::Module> module,
                                           gpu::Launch launch, std::uint32_t blocks_ahead) {
  return std::make_unique<EmulatedSource>(std::move(module), std::move(launch),
                                          std::max(blocks_ahead, 1U));
}

Result<std::shared_ptr<const PackedLaunch>> read_traced_launch(const std::filesystem::path& path) {
  Recorder recorder;
  DEMARC_TRY(const std::string beginning, read_file(path, 4096));
  Result<void> read;
  if (emulate::begins_accelsim_trace(beginning)) {
    auto imported = emulate::read_accelsim_trace(path, recorder.sink);
    if (!imported) read = tl::unexpected(std::move(imported).error());
  } else {
    read = emulate::read_trace(path, recorder.sink);
  }
  if (!read) {
    // What the sink refuses does not know of files.
    Error error = std::move(read).error();
    const bool named = error.message.find(path.string()) != std::string::npos;
    if (!named) error.message = path.string() + ": " + error.message;
    return tl::unexpected(std::move(error));
  }
  if (recorder.launch->kernels.empty()) return invalid_input("{}: no kernel", path.string());
  return std::shared_ptr<const PackedLaunch>(recorder.launch);
}

}  // namespace demarc::sim::memory
