// The thread that asks MPS to end work, and the processes whose work it is.
#include "demarc/serve/work_ender.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

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

void WorkTarget::wait_for_end(int milliseconds) const {
  pollfd item{file.get(), POLLIN, {}};
  ::poll(&item, 1, milliseconds);
}

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

std::list<WorkEnder::Done> WorkEnder::take_done() {
  const std::lock_guard lock(mutex_);
  eventfd_t count = 0;
  ::eventfd_read(woken_.get(), &count);
  return std::exchange(done_, {});
}

// All of them in one conversation: who comes last waits for one, not for as many as came first.
void WorkEnder::end_together(std::list<Done>& jobs) const {
  std::vector<WorkTarget> all;
  std::vector<Done*> whose;
  for (Done& job : jobs) {
    for (WorkTarget& target : job.targets) {
      all.push_back(std::move(target));
      whose.push_back(&job);
    }
    job.targets.clear();
  }
  const auto results = all.empty() ? std::vector<Result<void>>() : end_(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!results[i] && whose[i]->result) whose[i]->result = results[i];
    whose[i]->targets.push_back(std::move(all[i]));
  }
  for (Done& job : jobs) {
    if (job.then) job.after = job.then(job.targets);
  }
}

void WorkEnder::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    std::list<Done> jobs = std::exchange(waiting_, {});
    lock.unlock();
    end_together(jobs);
    lock.lock();
    done_.splice(done_.end(), jobs);
    ::eventfd_write(woken_.get(), 1);
  }
}

}  // namespace demarc::serve
