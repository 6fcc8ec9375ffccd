// Lends half of a card's pages to one tenant, as demarc serve does, but by a mask of the caller's
// choice and as if every second page had the other constant, without a look at the card's colours:
// windows can be tried on any card. It isolates nothing.
//   demarc_lender SOCKET PAGES MASK     for demarc exec --socket SOCKET --tenant a
#include <fmt/format.h>
#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <list>
#include <utility>

#include "demarc/base/free_ranges.hpp"
#include "demarc/base/rounding.hpp"
#include "demarc/card/card.hpp"
#include "demarc/card/colored_memory.hpp"
#include "demarc/guest/control.hpp"
#include "demarc/guest/lent_share.hpp"
#include "demarc/lease/messages.hpp"
#include "demarc/lease/packet.hpp"

namespace {

using namespace demarc;  // NOLINT: one program

template <class T>
T taken(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "demarc_lender: {}\n", result.error().message);
  std::exit(2);
}

Result<std::shared_ptr<cuda::ColoredPool>> pool_of(const cuda::GpuPointer& gpu, std::uint64_t pages,
                                                   std::uint64_t mask) {
  DEMARC_TRY(auto arena, cuda::PageArena::create(gpu, pages, cuda::Lending::by_descriptor));
  DEMARC_TRY(auto coloring, color::Coloring::make(std::span(&mask, 1), arena.page_bytes()));
  std::vector<std::uint32_t> constants(pages);
  for (std::uint32_t page = 0; page < pages; ++page) constants[page] = page % 2;
  DEMARC_TRY(auto colors, cuda::given_parities(arena, std::move(coloring), constants));
  constexpr cuda::ShareRequest halves[] = {{{1, 2}, 0}, {{2, 2}, 0}};
  return cuda::ColoredPool::adopt(std::move(arena), std::move(colors), halves);
}

class Lender {
 public:
  Lender(cuda::CardPointer card, std::shared_ptr<cuda::ColoredPool> pool) : pool_(std::move(pool)) {
    const cuda::PageArena& arena = pool_->arena();
    const cuda::LentShare lent = taken(pool_->lend(1));
    gpu::TpcSet all;
    for (std::uint32_t tpc = 0; tpc < card->topology().tpcs.size(); ++tpc) {
      all.insert(gpu::TpcIndex(tpc));
    }
    mask_ = taken(card->hardware_mask(all));
    for (std::uint64_t page = 0; page < arena.pages(); ++page) {
      pages_.push_back(taken(arena.lend_page(color::ArenaPage(page))));
    }
    lease_.tenant = "a";
    lease_.card = lent.card;
    lease_.tpcs = to_string(all);
    lease_.mask = {{mask_.disabled.begin(), mask_.disabled.end()}, card->topology().sm_count()};
    lease_.bytes = lease_.window_bytes = lent.bytes;
    lease_.share = lent;
    free_.put({}, color::LinearByte(lease_.bytes));
  }

  struct Client {
    lease::PacketSocket socket;
    std::vector<color::Extent> extents = {};
  };
  // Nothing: the client is gone.
  bool serve(Client& client, int lock) {
    const auto received = client.socket.receive();
    if (!received || received->ended) return false;
    if (!received->packet) return true;
    std::vector<int> files;
    const auto request = lease::parse_request(received->packet->text);
    const std::string said =
        request ? std::visit([&](const auto& one) { return answer(client, one, lock, files); },
                             *request)
                : lease::to_text(request.error());
    return client.socket.send(said, files).value_or(false);
  }
  void forget(const Client& client) {
    for (const color::Extent& extent : client.extents) free_.put(extent.first, extent.end());
  }

 private:
  std::string answer(Client&, const lease::OpenRequest& open, int lock, std::vector<int>& files) {
    const auto control = cuda::Control::open(open.control);
    if (!control) return lease::to_text(control.error());
    if (const auto stored = control->store_mask(mask_, true, lease_.tpcs); !stored) {
      return lease::to_text(stored.error());
    }
    files = {lock};
    return lease::to_text(lease::Opened{lease_, token});
  }
  std::string answer(Client&, const lease::AttachRequest&, int lock, std::vector<int>& files) {
    files = {lock};
    return lease::to_text(lease::Attached{lease_});
  }
  std::string answer(Client&, const lease::PagesRequest& pages, int, std::vector<int>& files) {
    for (std::uint64_t i = 0; i < pages.run.count; ++i) {
      files.push_back(pages_.at((pages.run.first + i).raw()).get());
    }
    return lease::to_text(lease::PageBatch{pages.run});
  }
  std::string answer(Client& client, const lease::TakeRequest& take, int, std::vector<int>&) {
    const std::uint64_t bytes = round_up(take.bytes, lease::extent_step);
    const auto first = free_.take(bytes);
    if (!first) {
      return lease::to_text(Error{ErrorKind::missing_capability, "no such run is free"});
    }
    client.extents.push_back({*first, bytes});
    return lease::to_text(client.extents.back());
  }
  std::string answer(Client& client, const lease::GiveRequest& give, int, std::vector<int>&) {
    std::erase_if(client.extents, [&](const color::Extent& extent) {
      if (extent.first != give.first) return false;
      free_.put(extent.first, extent.end());
      return true;
    });
    return lease::to_text(lease::Done{});
  }
  template <class Other>
  std::string answer(Client&, const Other&, int, std::vector<int>&) {
    return lease::to_text(lease::Done{});
  }

  static constexpr const char* token = "00ff";
  std::shared_ptr<cuda::ColoredPool> pool_;
  cuda::HardwareMask mask_;
  std::vector<OwnedFile> pages_;
  lease::Lease lease_;
  FreeRanges<color::LinearByte> free_;
};

}  // namespace

int main(int count, char** words) {
  if (count != 4) {
    fmt::print(stderr, "usage: demarc_lender SOCKET PAGES MASK\n");
    return 1;
  }
  const auto driver = taken(cuda::Driver::load());
  const auto gpu = taken(cuda::Gpu::open(driver, 0));
  Lender lender(taken(cuda::Card::open(gpu)),
                taken(pool_of(gpu, std::strtoull(words[2], nullptr, 0),
                              std::strtoull(words[3], nullptr, 0))));
  const auto listener = taken(lease::PacketListener::listen(words[1], std::nullopt));
  fmt::print(stderr, "demarc_lender: listens\n");
  std::list<Lender::Client> clients;
  for (;;) {
    std::vector<pollfd> items{{listener.file(), POLLIN, 0}};
    for (const auto& client : clients) items.push_back({client.socket.file(), POLLIN, 0});
    ::poll(items.data(), items.size(), -1);
    std::size_t item = 1;
    std::erase_if(clients, [&](Lender::Client& client) {
      if (items[item++].revents == 0 || lender.serve(client, listener.lock())) return false;
      lender.forget(client);
      return true;
    });
    if (items[0].revents == 0) continue;
    if (auto client = listener.accept()) clients.push_back({std::move(*client)});
  }
}
