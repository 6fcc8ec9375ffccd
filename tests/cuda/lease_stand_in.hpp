// What answers `demarc exec --tenant`, or a process of a tenant, as demarc serve does, in a thread
// of the test: it lends TPCs 0 and 1 and share 1 of a pool, and notes what it is asked.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "demarc/base/rounding.hpp"
#include "demarc/guest/control.hpp"
#include "demarc/lease/messages.hpp"
#include "demarc/lease/packet.hpp"
#include "lent_pools.hpp"

namespace demarc::test {

class LeaseStandIn {
 public:
  static constexpr const char* token = "00ff";

  explicit LeaseStandIn(const fake::FakeConfig& config = fake::small_gpu())
      : card_(fake_card(config).value()),
        pool_(pool_of_constants(card_->gpu(), page_constants, both_halves,
                                cuda::Lending::by_descriptor)
                  .value()) {
    given = card_->hardware_mask(gpu::TpcSet{0, 1}).value();
    lease.tpcs = "0-1";
    lease.mask = {{given.disabled.begin(), given.disabled.end()}, 4};
    lease.tenant = "a";
    lease.card = pool_->arena().gpu()->uuid();
    lease.share = pool_->lend(1).value();
    lease.bytes = lease.share.bytes;
    lease.window_bytes = lease.bytes;
    for (std::uint64_t page = 0; page < lease.share.pages; ++page) {
      pages_.push_back(pool_->arena().lend_page(color::ArenaPage(page)).value());
    }
    thread_ = std::thread([this] { serve(); });
    while (!has_begun_) std::this_thread::yield();
  }
  ~LeaseStandIn() {
    ends_ = true;
    thread_.join();
  }
  LeaseStandIn(const LeaseStandIn&) = delete;
  LeaseStandIn& operator=(const LeaseStandIn&) = delete;

  [[nodiscard]] const std::string& socket() const { return socket_; }
  // Once this file is there the lease of the client that is connected is ended.
  [[nodiscard]] std::string end_file() const { return socket_ + ".end"; }
  // ::fork() while the thread does nothing: the child has no copy of a lock that the thread has
  // taken, as of the heap.
  [[nodiscard]] pid_t fork() {
    const std::lock_guard still(works_);
    return ::fork();
  }
  // As Supervised::apart() does it.
  [[nodiscard]] int apart(const std::function<int()>& work) {
    const pid_t child = fork();
    if (child == 0) std::_Exit(work());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  // What it was asked since the last time.
  std::vector<lease::Request> asked() {
    const std::lock_guard lock(mutex_);
    return std::exchange(asked_, {});
  }

  lease::Lease lease;                      // to be changed before a process opens or attaches to it
  cuda::HardwareMask given;                // what the block of the program gets; the same
  std::string opened_token = token;        // of a lease that is opened; the same
  std::atomic<bool> lends_no_page{false};  // sends too few
  std::atomic<bool> hangs_up{false};       // at the next question
  std::atomic<int> shows{1000};            // so many stretches more
  std::string key = "0123456789abcdef0123456789abcdef";  // the same for all that is lent
  std::optional<lease::Extent> of_others;                // may be borrowed, under any key

 private:
  void serve() {
    std::optional<lease::PacketSocket> client;
    has_begun_ = true;
    while (!ends_) {
      pollfd coming{client ? client->file() : listener_.file(), POLLIN, 0};
      const bool asks = ::poll(&coming, 1, turn_ms) > 0;
      const std::lock_guard working(works_);
      if (client && std::filesystem::exists(end_file())) {
        static_cast<void>(client->send(lease::to_text(
            Error{ErrorKind::missing_capability, "tenant 'a' was revoked: this lease has ended"})));
        client.reset();
        continue;
      }
      if (!asks) continue;
      if (!client) {
        client = listener_.accept();
      } else {
        const auto received = client->receive();
        if (!received || !received->packet || !answer(*client, received->packet->text)) {
          client.reset();
        }
      }
    }
  }
  bool answer(const lease::PacketSocket& client, const std::string& text) {
    const lease::Request request = lease::parse_request(text).value();
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(request);
    }
    if (hangs_up) return false;
    std::vector<int> files;
    const std::string said = answer_to(request, files);
    return client.send(said, files).value_or(false);
  }
  std::string answer_to(const lease::Request& request, std::vector<int>& files) {
    if (const auto* open = std::get_if<lease::OpenRequest>(&request)) {
      EXPECT_TRUE(cuda::Control::open(open->control)->store_mask(given, true, lease.tpcs));
      files = {listener_.lock()};
      return lease::to_text(lease::Opened{lease, opened_token});
    }
    if (const auto* attach = std::get_if<lease::AttachRequest>(&request)) {
      if (attach->token != token)
        return lease::to_text(Error{ErrorKind::invalid_input, "no such lease"});
      files = {listener_.lock()};
      return to_text(lease::Attached{lease});
    }
    if (const auto* wanted = std::get_if<lease::PagesRequest>(&request)) {
      for (std::uint64_t i = lends_no_page ? 1 : 0; i < wanted->run.count; ++i) {
        files.push_back(pages_.at((wanted->run.first + i).raw()).get());
      }
      return to_text(lease::PageBatch{wanted->run});
    }
    if (const auto* take = std::get_if<lease::TakeRequest>(&request)) {
      const lease::Extent extent{taken_, round_up(take->bytes, lease::extent_step)};
      if (extent.end() > color::LinearByte(lease.bytes)) {
        return lease::to_text(Error{ErrorKind::missing_capability, "the tenant has no such run"});
      }
      taken_ = extent.end();
      return lease::to_text(extent);
    }
    if (std::holds_alternative<lease::LendRequest>(request)) return to_text(lease::Lent{key});
    if (std::holds_alternative<lease::BorrowRequest>(request)) {
      if (of_others) return lease::to_text(*of_others);
      return lease::to_text(Error{ErrorKind::invalid_input, "no process shares such memory"});
    }
    if (std::holds_alternative<lease::ShowRequest>(request) && shows-- <= 0) {
      return lease::to_text(Error{ErrorKind::missing_capability, "4 of 4 bytes are in use"});
    }
    return to_text(lease::Done{});
  }

  static constexpr int turn_ms = 5;
  static inline const std::vector<std::uint32_t> page_constants{0, 1, 1, 0};
  cuda::CardPointer card_;
  std::shared_ptr<cuda::ColoredPool> pool_;
  std::vector<OwnedFile> pages_;
  std::string socket_ = (fresh_folder("lease_stand_in") / "socket").string();
  lease::PacketListener listener_ = lease::PacketListener::listen(socket_, std::nullopt).value();
  color::LinearByte taken_;
  std::mutex mutex_;
  std::vector<lease::Request> asked_;
  std::mutex works_;  // held while the thread does anything but wait
  std::atomic<bool> has_begun_{false};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace demarc::test
