// Numbers of the translation simulator: mixing them does not compile, and the ways between them.
#include "demarc/sim/translation/places.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "demarc/sim/translation/application.hpp"
#include "translation/events.hpp"
#include "translation/gpu_memory.hpp"
#include "translation/network.hpp"
#include "translation/tlb.hpp"
#include "translation/walker_pool.hpp"

namespace demarc::sim::translation {
namespace {

template <class... All>
constexpr bool all_differ = true;
template <class First, class... Rest>
constexpr bool all_differ<First, Rest...> =
    (!std::is_constructible_v<First, Rest> && ...) &&
    (!std::is_constructible_v<Rest, First> && ...) && all_differ<Rest...>;
static_assert(
    all_differ<Cycles, Turns, Address, GpuIndex, LineNumber, PageNumber, FrameNumber, FrameLine,
               Node, CuIndex, WaveSlot, GroupSlot, AccessSlot, MessageSlot, KernelNumber, LruSlot>);

template <class T>
concept WalkedFor = requires(T gpu_or_page, GpuIndex gpu, PageNumber page) {
  WalkRequest{gpu, gpu_or_page};
};
static_assert(WalkedFor<PageNumber> && !WalkedFor<GpuIndex> && !WalkedFor<std::uint32_t>);
template <class T>
concept ReadFromMemory = requires(GpuMemory memory, T line) {
  memory.read(line, Cycles());
};
static_assert(ReadFromMemory<FrameLine> && !ReadFromMemory<LineNumber>);
template <class T>
concept LookedUp = requires(Tlb<int> tlb, T page) {
  tlb.look_up(page, 1);
};
static_assert(LookedUp<PageNumber> && !LookedUp<LineNumber> && !LookedUp<FrameNumber>);
template <class T>
concept Crosses = requires(Network network, T to) {
  network.hops(Node(0), to);
};
static_assert(Crosses<Node> && !Crosses<GpuIndex>);
template <class T>
concept Touched = requires(MemoryInstruction instruction, T place) {
  instruction.touch(place);
};
static_assert(Touched<Address> && Touched<LineNumber> && !Touched<std::uint64_t>);
template <EventKind kind, class... Subject>
concept Happens = requires(Subject... subject) {
  Event::of<kind>(subject...);
};
static_assert(Happens<EventKind::l1_fill, CuIndex, PageNumber>);
static_assert(!Happens<EventKind::l1_fill, CuIndex>);
static_assert(!Happens<EventKind::l1_fill, PageNumber, CuIndex>);
static_assert(!Happens<EventKind::l1_fill, GpuIndex, PageNumber>);
static_assert(Happens<EventKind::dispatch, GpuIndex> && !Happens<EventKind::dispatch, CuIndex>);
static_assert(!Happens<EventKind::dispatch, GpuIndex, PageNumber>);

TEST(TranslationPlaces, a_line_has_its_page_and_keeps_its_place_in_a_frame) {
  const PageSize pages(4096);
  const LineNumber line = line_of(Address(3 * 4096 + 5 * 64 + 63));
  EXPECT_EQ(line, LineNumber(3 * 64 + 5));
  EXPECT_EQ(pages.page_of(line), PageNumber(3));
  EXPECT_EQ(pages.within(line), 5U);
  EXPECT_EQ(pages.line_in(PageNumber(3), 5), line);
  EXPECT_EQ(line_in(FrameNumber(7), line, pages), FrameLine(7 * 64 + 5));
  EXPECT_EQ(pages.pages_of(4096), 1U);
  EXPECT_EQ(pages.pages_of(4097), 2U);
}

TEST(TranslationPlaces, an_address_beyond_the_last_line_is_no_line) {
  EXPECT_EQ(line_of(Address((std::uint64_t{1} << 38U) - 1)), LineNumber(0xffffffff));
  EXPECT_THROW((void)line_of(Address(std::uint64_t{1} << 38U)), std::logic_error);
}

TEST(TranslationPlaces, ports_turn_as_often_a_cycle_as_there_are) {
  const Ports ports(4);
  EXPECT_EQ(ports.first_of(10_cycles), Turns(40));
  EXPECT_EQ(ports.cycle_of(Turns(43)), 10_cycles);
  EXPECT_EQ(ports.cycle_of(Turns(44)), 11_cycles);
  EXPECT_EQ(ports.after(3), 0_cycles);
  EXPECT_EQ(ports.after(4), 1_cycles);
}

}  // namespace
}  // namespace demarc::sim::translation
