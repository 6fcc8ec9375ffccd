// Numbers of the memory simulator: mixing them does not compile, and the ways between them.
#include "demarc/sim/memory/lines.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "demarc/sim/memory/simulation.hpp"
#include "memory/engine.hpp"

namespace demarc::sim::memory::test {
namespace {

template <class A, class B>
constexpr bool differ = !std::is_constructible_v<A, B> && !std::is_constructible_v<B, A>;
static_assert(differ<Cycles, Ticks> && differ<Address, PhysicalAddress>);
static_assert(differ<LineNumber, PageNumber> && differ<LineNumber, RowNumber>);
static_assert(differ<SliceIndex, SetInSlice> && differ<SetInSlice, BankInSlice>);
static_assert(differ<L1Tags::Way, L2Tags::Way> && differ<L1Tags::Set, L2Tags::Set>);
static_assert(differ<L2Tags::Way, L2Tags::Set> && differ<SmIndex, SliceIndex>);
static_assert(differ<WarpIndex, BlockIndex> && differ<PacketIndex, FetchIndex>);
static_assert(differ<ClientIndex, SmIndex> && differ<BankIndex, BankInSlice>);
static_assert(differ<LineEntry, std::uint64_t> && differ<LineEntry, Address>);

template <class T>
concept Decoded = requires(const AddressDecoder decoder, T where) {
  decoder(where);
};
static_assert(Decoded<LineNumber> && !Decoded<PhysicalAddress> && !Decoded<std::uint32_t>);
template <class T>
concept HasLine = requires(T address) {
  line_of(address);
};
static_assert(HasLine<PhysicalAddress> && !HasLine<Address> && !HasLine<std::uint64_t>);
template <class T>
concept TouchedInL2 = requires(Simulation gpu, T address) {
  gpu.touch(address);
};
static_assert(TouchedInL2<PhysicalAddress> && !TouchedInL2<Address> && !TouchedInL2<LineNumber>);
template <class T>
concept RunFor = requires(Simulation gpu, T time) {
  gpu.run_for(time);
};
static_assert(RunFor<Cycles> && !RunFor<Ticks> && !RunFor<std::uint64_t>);
template <class T>
concept FoundInTags = requires(L2Tags tags, T line) {
  tags.find(L2Tags::Set(), line);
};
static_assert(FoundInTags<LineNumber> && !FoundInTags<std::uint32_t> && !FoundInTags<RowNumber>);

template <EventKind kind, class T>
concept Happens = requires(T subject) {
  Event::of<kind>(subject);
};
static_assert(Happens<EventKind::fill, FetchIndex> && !Happens<EventKind::fill, PacketIndex>);
static_assert(Happens<EventKind::lsu, SmIndex> && !Happens<EventKind::lsu, WarpIndex>);
template <class T>
concept Owns = requires(Packet packet, T owner) {
  packet.owner = owner;
};
static_assert(Owns<WarpIndex> && Owns<RequestIndex> && !Owns<PacketIndex>);

TEST(MemoryLines, an_index_in_fewer_bits_comes_back_or_is_refused) {
  const Packed<SmIndex, std::uint16_t> most = SmIndex(65535);
  EXPECT_EQ(SmIndex(most), SmIndex(65535));
  EXPECT_THROW((Packed<SmIndex, std::uint16_t>(SmIndex(65536))), std::logic_error);
}

TEST(MemoryLines, an_address_has_its_line_up_to_the_last_one) {
  EXPECT_EQ(line_of(PhysicalAddress(3 * 128 + 127)), LineNumber(3));
  EXPECT_EQ(address_of(LineNumber(3)), PhysicalAddress(3 * 128));
  EXPECT_EQ(find_line(PhysicalAddress(max_bytes - 1)), LineNumber(0xffffffff));
  EXPECT_EQ(find_line(PhysicalAddress(max_bytes)), std::nullopt);
  EXPECT_THROW((void)line_of(PhysicalAddress(max_bytes)), std::logic_error);
}

TEST(MemoryLines, an_entry_is_the_address_of_a_line_and_its_sectors) {
  LineEntry entry(Address(0x1000 + 0x65), sector_of(Address(0x1000 + 0x65)));
  EXPECT_EQ(entry.line(), Address(0x1000));
  EXPECT_EQ(entry.sectors(), 8U);
  entry.add(1);
  EXPECT_EQ(entry.word(), 0x1009U);
  EXPECT_EQ(LineEntry::from_word(0x1009), entry);
  EXPECT_EQ(LineEntry::again(0x1009), entry);
  EXPECT_LT(entry, LineEntry(Address(0x1080), 1));
  for (const std::uint64_t word : {0x1000U, 0x1011U, 0x1021U, 0x1041U})
    EXPECT_EQ(LineEntry::from_word(word), std::nullopt) << word;
}

TEST(MemoryLines, ticks_end_within_the_cycle_that_they_begin) {
  EXPECT_EQ(ticks_of(3_cycles), Ticks(768));
  EXPECT_EQ(cycles_of(Ticks(768)), 3_cycles);
  EXPECT_EQ(cycles_of(Ticks(769)), 4_cycles);
}

}  // namespace
}  // namespace demarc::sim::memory::test
