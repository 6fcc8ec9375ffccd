#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "demarc/study/remote_lane.hpp"

namespace demarc::study {
namespace {

class CommandLane : public Lane {
 public:
  CommandLane(std::vector<std::string> prefix, Environment environment, double settle_seconds)
      : prefix_(std::move(prefix)), environment_(std::move(environment)), settle_(settle_seconds) {}
  ~CommandLane() override { finish(); }

  Result<void> load(const Workload& workload) override {
    if (!workload.spec.starts_with("cmd:") || workload.spec.size() == 4) {
      return invalid_input("'{}' is no command; write cmd:COMMAND LINE", workload.spec);
    }
    command_ = workload.spec.substr(4);
    return {};
  }
  Result<std::vector<double>> sample(std::uint32_t, double) override { return not_a_victim(); }
  Result<Outputs> outputs() override { return not_a_victim(); }

  Result<void> start() override {
    argv_ = prefix_;
    argv_.insert(argv_.end(), {"/bin/sh", "-c", command_});
    options_.set = environment_;
    DEMARC_TRY(auto child, Process::spawn(argv_, options_));
    stopping_ = false;
    keeper_ = std::thread([this, running = std::move(child)]() mutable { keep(running); });
    std::unique_lock lock(mutex_);
    ended_early_.wait_for(lock, std::chrono::duration<double>(settle_),
                          [this] { return failures_ >= most_failures; });
    if (failures_ < most_failures) return {};
    lock.unlock();
    finish();
    return invalid_input("--aggressor-cmd: '{}' ends at once; it must run until it is stopped",
                         command_);
  }

  Result<double> stop() override {
    finish();
    return 0.0;
  }

 private:
  static constexpr int most_failures = 3;

  [[nodiscard]] tl::unexpected<Error> not_a_victim() const {
    return invalid_input("'{}' is a command: it can be an aggressor, not a victim", command_);
  }

  // Starts the command again whenever it ends. Runs that last under a tenth of a second count as
  // failures.
  void keep(Process& running) {
    using Clock = std::chrono::steady_clock;
    auto begun = Clock::now();
    while (!stopping_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (running.running()) continue;
      if (Clock::now() - begun < std::chrono::milliseconds(100)) {
        const std::lock_guard lock(mutex_);
        if (++failures_ >= most_failures) {
          ended_early_.notify_all();
          return;
        }
      }
      auto next = Process::spawn(argv_, options_);
      if (!next) return;
      running = std::move(*next);
      begun = Clock::now();
    }
    running.end(0);
  }

  void finish() {
    stopping_ = true;
    if (keeper_.joinable()) keeper_.join();
    failures_ = 0;
  }

  std::vector<std::string> prefix_;
  Environment environment_;
  double settle_;
  std::string command_;
  std::vector<std::string> argv_;
  ProcessOptions options_;
  std::thread keeper_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable ended_early_;
  int failures_ = 0;
};

}  // namespace

std::unique_ptr<Lane> make_command_lane(std::vector<std::string> prefix, Environment environment,
                                        double settle_seconds) {
  return std::make_unique<CommandLane>(std::move(prefix), std::move(environment), settle_seconds);
}

}  // namespace demarc::study
