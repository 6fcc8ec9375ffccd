// The thread that asks MPS to end work, and the processes whose work it is.
#include "demarc/serve/work_ender.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

namespace demarc::serve {

bool WorkTarget::lives() const {
  pollfd item{file.get(), POLLIN, {}};
  return file.get() >= 0 && ::poll(&item, 1, 0) == 0;
}

void WorkTarget::kill() const {
  ::syscall(SYS_pidfd_send_signal, file.get(), SIGKILL, nullptr, 0);
}

namespace {

constexpr std::chrono::milliseconds killed_wait{1000};

// All are killed before one is waited for, and all are waited for together.
void kill_targets_of(const std::list<WorkEnder::Done>& jobs) {
  using KillClock = std::chrono::steady_clock;
  for (const auto& job : jobs) {
    for (const WorkTarget& target : job.targets) target.kill();
  }
  const auto until = KillClock::now() + killed_wait;
  for (const auto& job : jobs) {
    for (const WorkTarget& target : job.targets) {
      pollfd item{target.file.get(), POLLIN, {}};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - KillClock::now());
      ::poll(&item, 1, std::max(0, static_cast<int>(left.count())));
    }
  }
}

}  // namespace

WorkEnder::WorkEnder(End end)
    : end_(std::move(end)), woken_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = std::thread([this] { run(); });
}

WorkEnder::~WorkEnder() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

WorkEnder::Job WorkEnder::begin(std::vector<WorkTarget> targets, Then then) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({++last_, {}, {}, std::move(targets), std::move(then)});
  changed_.notify_all();
  return last_;
}

void WorkEnder::gather(bool on) {
  const std::lock_guard lock(mutex_);
  gathers_ = on;
  changed_.notify_all();
}

std::list<WorkEnder::Done> WorkEnder::take_done() {
  const std::lock_guard lock(mutex_);
  eventfd_t count = 0;
  ::eventfd_read(woken_.get(), &count);
  return std::exchange(done_, {});
}

// All of them in one conversation: who comes last waits for one, not for as many as came first.
void WorkEnder::end_together(std::list<Done>& jobs) const {
  std::vector<WorkTarget> all;
  for (Done& job : jobs) {
    for (WorkTarget& target : job.targets) all.push_back(std::move(target));
  }
  if (all.empty()) return;
  const auto results = end_(all);
  std::size_t number = 0;
  for (Done& job : jobs) {
    for (WorkTarget& target : job.targets) {
      if (!results[number] && job.result) job.result = results[number];
      target = std::move(all[number]);
      ++number;
    }
  }
}

void WorkEnder::deliver(Done job) {
  const std::lock_guard lock(mutex_);
  done_.push_back(std::move(job));
  ::eventfd_write(woken_.get(), 1);
}

void WorkEnder::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || (!gathers_ && !waiting_.empty()); });
    if (ends_) return;
    std::list<Done> jobs = std::exchange(waiting_, {});
    lock.unlock();
    end_together(jobs);
    std::list<Done> killed;
    for (Done& job : jobs) {
      if (job.then) {
        killed.push_back(std::move(job));
      } else {
        deliver(std::move(job));
      }
    }
    kill_targets_of(killed);
    for (Done& job : killed) {
      job.after = job.then();
      deliver(std::move(job));
    }
    lock.lock();
  }
}

}  // namespace demarc::serve
