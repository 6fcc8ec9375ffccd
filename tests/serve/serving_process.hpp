// A server on the stand-in driver, for programs that are processes of their own.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "confine_fixture.hpp"
#include "demarc/serve/server.hpp"
#include "lent_pools.hpp"
#include "pool_card.hpp"

namespace demarc::serve {

// In a process of its own, until it is told to end; then it looks at its arena. Its exit code: 0
// where all bytes that are not zero are of colours that programs had.
class ServingProcess {
 public:
  ServingProcess(const std::string& socket, bool remainders, const std::string& mps = "")
      : ServingProcess(
            socket, [=] { return halves(remainders); }, mps) {}
  // Two of the colours of a described card that survive pages of 4 KiB.
  ServingProcess(const std::string& socket, const char* card)
      : ServingProcess(
            socket, [=] { return page_colors_of(card); }, "") {}
  ~ServingProcess() {
    kill();
    ::munmap(shared_, sizeof(Shared));
  }
  ServingProcess(const ServingProcess&) = delete;
  ServingProcess& operator=(const ServingProcess&) = delete;

  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(std::exchange(process_, -1), nullptr, 0);
  }
  [[nodiscard]] bool ready() const { return shared_->ready; }
  [[nodiscard]] pid_t process() const { return process_; }
  // Bytes of the arena that are not zero, once all memory is back: freed memory is filled with
  // zeros.
  int end() {
    shared_->end = true;
    int status = -1;
    ::waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
  }

 private:
  struct Shared {
    std::atomic<bool> ready{false};
    std::atomic<bool> end{false};
  };
  struct Memory {
    fake::FakeConfig config;
    std::shared_ptr<cuda::ColoredPool> pool;
    std::uint32_t colors = 2;
  };

  ServingProcess(const std::string& socket, const std::function<Memory()>& memory,
                 const std::string& mps)
      : socket_(socket), mps_(mps) {
    shared_ = static_cast<Shared*>(
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    new (shared_) Shared;
    process_ = ::fork();
    if (process_ == 0) std::_Exit(serve(memory()));
    while (!shared_->ready && ::waitpid(process_, nullptr, WNOHANG) == 0) ::usleep(1000);
  }

  static Memory halves(bool remainders) {
    fake::FakeConfig config = fake::small_gpu();
    config.remainders = remainders;
    return {config, remainders ? test::lent_remainders() : test::lent_parities({0, 1, 1, 0})};
  }
  static Memory page_colors_of(const char* card) {
    const auto masks = test::page_masks(card);
    const std::uint32_t colors = 1U << masks.size();
    const cuda::ShareRequest two[] = {{color::ColorSet::run(0, 1, colors), 0},
                                      {color::ColorSet::run(1, 1, colors), 0}};
    const auto config = test::with_memory_of(card);
    return {config,
            test::parity_pool(std::uint64_t{256} << 20U, two, masks, config,
                              cuda::Lending::by_descriptor)
                .value(),
            colors};
  }

  int serve(const Memory& memory) {
    const auto& pool = memory.pool;
    const auto card = test::fake_card(memory.config).value();
    const auto color_of = [&memory](std::uint32_t tenant) {
      return color::ColorSet::run(tenant, 1, memory.colors);
    };
    const auto side = PoolCard::adopt(card, pool, {color_of(0), color_of(1)}).value();
    ServerOptions options;
    options.socket = socket_;
    options.user = ::getuid();
    options.mps = mps_;
    options.tell = [](const std::string& line) {
      std::fprintf(stderr, "server: %s\n", line.c_str());
    };
    options.end_work = [this](const std::vector<WorkTarget>& targets) { return end_work(targets); };
    std::vector<Terms> tenants;
    for (std::uint32_t i = 0; i < 2; ++i) {
      const std::uint64_t bytes = side->share(color_of(i)).value().bytes;
      tenants.push_back({i == 0 ? "a" : "b", i == 0 ? gpu::TpcSet{0, 1} : gpu::TpcSet{5},
                         color_of(i), i == 0 ? std::nullopt : std::optional(2U), bytes, bytes,
                         bytes});
    }
    auto server = Server::start(options, *side, tenants);
    if (!server) return cuda::complain(server.error().message);
    shared_->ready = true;
    while (!shared_->end || !(*server)->idle()) {
      if (const auto turned = (*server)->turn(10); !turned)
        return cuda::complain(turned.error().message);
    }
    std::vector<char> bytes(pool->arena().pages() * pool->arena().page_bytes());
    const auto& api = card->gpu()->api();
    if (api.cuMemcpyDtoH_v2(bytes.data(), pool->arena().address(), bytes.size()) != 0) return 3;
    const auto left = std::count_if(bytes.begin(), bytes.end(), [](char c) { return c != 0; });
    return left == 0 ? 0 : cuda::complain(std::to_string(left) + " bytes were left in the arena");
  }
  // Notes whose work it is asked to end, and answers once nothing holds it.
  [[nodiscard]] std::vector<Result<void>> end_work(const std::vector<WorkTarget>& targets) const {
    std::vector<pid_t> processes;
    for (const WorkTarget& target : targets) processes.push_back(target.process);
    std::ofstream(socket_ + ".ended", std::ios::app)
        << fmt::format("{}\n", fmt::join(processes, " "));
    while (::access((socket_ + ".hold").c_str(), F_OK) == 0) ::usleep(1000);
    std::vector<Result<void>> results(targets.size());
    if (::access((socket_ + ".fails").c_str(), F_OK) != 0) return results;
    for (auto& result : results) result = check_failed("it could not");
    return results;
  }

  std::string socket_;
  std::string mps_;
  Shared* shared_;
  pid_t process_ = -1;
};

}  // namespace demarc::serve
