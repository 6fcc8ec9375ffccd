// Neighbours: their genes, what breeding keeps to, and what their kernels touch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "demarc/emulate/emulate.hpp"
#include "demarc/emulate/placement.hpp"
#include "demarc/launch/launch_write.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/study/neighbour.hpp"

namespace demarc::study {
namespace {

using ::testing::HasSubstr;

NeighbourMeans generous() {
  NeighbourMeans means;
  means.bytes = ~std::uint64_t{0};
  means.shared_bytes = gpu::max_shared_bytes;
  means.slice_lines = {0, 256, 640, 4096};
  return means;
}

std::vector<Neighbour> many(std::size_t count) {
  Random random(7);
  std::vector<Neighbour> all;
  while (all.size() < count) {
    const Neighbour stranger = random_neighbour(random);
    all.push_back(stranger);
    all.push_back(mutated(stranger, random));
    all.push_back(crossed(all[all.size() - 1], all[random.below(all.size())], random));
  }
  return all;
}

bool has(const OperationRow& row, Pattern pattern) {
  return std::find(row.patterns.begin(), row.patterns.end(), pattern) != row.patterns.end();
}

TEST(Neighbour, every_operation_and_pattern_has_one_row_of_its_own_name) {
  std::set<std::string_view> names;
  for (const OperationRow& row : operations()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(&row_of(row.operation), &row);
    EXPECT_FALSE(row.patterns.empty()) << row.name;
    EXPECT_TRUE(row.answers || !has(row, Pattern::chase)) << row.name;
  }
  for (const PatternRow& row : patterns()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(&row_of(row.pattern), &row);
  }
}

TEST(Neighbour, footprints_go_from_4_KiB_to_beyond_96_GiB) {
  const auto values = genes().front().values;
  EXPECT_EQ(values.front(), 4096U);
  EXPECT_GT(values.back(), std::uint64_t{96} << 30U);
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
}

TEST(Neighbour, what_is_bred_is_settled_and_each_number_a_value_of_its_gene) {
  for (const Neighbour& one : many(300)) {
    EXPECT_EQ(settled(one), one);
    EXPECT_TRUE(has(row_of(one.operation), one.pattern));
    for (const Gene& gene : genes()) {
      EXPECT_TRUE(std::binary_search(gene.values.begin(), gene.values.end(), one.*gene.value))
          << gene.name << " " << one.*gene.value;
    }
  }
}

TEST(Neighbour, numbers_that_nothing_uses_do_not_tell_neighbours_apart) {
  Neighbour one;
  one.stride = 4096;
  Neighbour other;
  other.stride = 8192;
  EXPECT_EQ(settled(one), settled(other));
  one.pattern = other.pattern = Pattern::stride;
  EXPECT_NE(settled(one), settled(other));
  Neighbour copy;
  copy.operation = Operation::copy_in;
  copy.threads = 1024;
  copy.pattern = Pattern::random;
  EXPECT_EQ(settled(copy).threads, 32U);
  EXPECT_EQ(settled(copy).pattern, Pattern::stream);
  Neighbour chase;
  chase.pattern = Pattern::chase;
  chase.in_flight = 8;
  EXPECT_EQ(settled(chase).in_flight, 1U);
  Neighbour short_one;
  short_one.in_flight = 8;
  EXPECT_EQ(settled(short_one).steps, 16U);
}

TEST(Neighbour, a_mutation_changes_one_or_two_genes) {
  Random random(3);
  const Neighbour parent = random_neighbour(random, Operation::load);
  for (int i = 0; i < 200; ++i) {
    const Neighbour child = mutated(parent, random);
    EXPECT_NE(child, parent);
    if (child.operation != parent.operation || child.pattern != parent.pattern) continue;
    int changed = 0;
    for (const Gene& gene : genes()) changed += child.*gene.value != parent.*gene.value;
    EXPECT_LE(changed, 2);
  }
}

TEST(Neighbour, a_child_of_two_has_every_gene_from_one_of_them) {
  Random random(3);
  Neighbour a = random_neighbour(random, Operation::store);
  Neighbour b = random_neighbour(random, Operation::reduction);
  a.pattern = b.pattern = Pattern::stride;
  bool from_a = false;
  bool from_b = false;
  for (int i = 0; i < 50; ++i) {
    const Neighbour child = crossed(a, b, random);
    for (const Gene& gene : genes()) {
      EXPECT_TRUE(child.*gene.value == a.*gene.value || child.*gene.value == b.*gene.value);
    }
    from_a |= child.operation == a.operation && child.blocks == b.blocks;
    from_b |= child.operation == b.operation && child.blocks == a.blocks;
  }
  EXPECT_TRUE(from_a && from_b);
}

TEST(Neighbour, what_the_means_lack_is_named_and_what_they_have_is_allowed) {
  NeighbourMeans means = generous();
  Neighbour one;
  one.footprint = 4096;
  EXPECT_EQ(impossible(one, means), "");
  means.bytes = 4096;
  EXPECT_EQ(impossible(one, means), "");
  means.bytes = 4095;
  EXPECT_THAT(impossible(one, means), HasSubstr("4095 bytes that a neighbour gets"));
  means = generous();
  one.operation = Operation::bulk_copy;
  means.target = 90;
  EXPECT_EQ(impossible(one, means), "");
  means.target = 89;
  EXPECT_THAT(impossible(one, means), HasSubstr("compute capability 9.0, the card has 8.9"));
  means = generous();
  one.threads = 1024;
  means.shared_bytes = 256 + 32 * 1024;
  EXPECT_EQ(impossible(one, means), "");
  --means.shared_bytes;
  EXPECT_THAT(impossible(one, means), HasSubstr("shared memory"));
  means = generous();
  for (const auto& [operation, need] : {std::pair{Operation::host_load, Need::host_memory},
                                        std::pair{Operation::copy_out, Need::copy_engines},
                                        std::pair{Operation::variable, Need::module_variables}}) {
    one.operation = operation;
    EXPECT_EQ(impossible(one, means), "");
    means.lacking[need] = "not here";
    EXPECT_EQ(impossible(one, means), "not here");
  }
  Neighbour slice = settled({Operation::load, Pattern::slice});
  EXPECT_EQ(impossible(slice, means), "");
  means.lacking[Need::one_slice] = "no map";
  EXPECT_EQ(impossible(slice, means), "no map");
  means.lacking.clear();
  means.slice_lines.clear();
  EXPECT_THAT(impossible(slice, means), HasSubstr("the lines of one L2 slice are unknown"));
}

TEST(Neighbour, a_run_has_no_more_accesses_than_the_means_allow) {
  NeighbourMeans means = generous();
  means.accesses = std::uint64_t{1} << 17U;
  for (const Neighbour& one : many(300)) {
    const Neighbour less = bounded(one, means);
    EXPECT_LE(less.blocks * less.threads * less.steps * less.launches, means.accesses);
    EXPECT_EQ(settled(less), less);
    EXPECT_LE(less.steps * less.launches, means.in_a_row);
    EXPECT_EQ(less.footprint, one.footprint);
    EXPECT_LE(less.in_flight, less.steps);
    if (one.blocks * one.threads * one.steps * one.launches <= means.accesses &&
        one.steps * one.launches <= means.in_a_row) {
      EXPECT_EQ(less, one);
    }
  }
}

// 4096 steps of 64 launches, each waiting for the one before, would run for half a second.
TEST(Neighbour, one_thread_makes_no_more_accesses_in_a_row_than_the_means_allow) {
  Neighbour one = settled({Operation::load, Pattern::chase});
  one.footprint = std::uint64_t{1} << 20U;
  one.steps = 4096;
  one.launches = 64;
  NeighbourMeans means = generous();
  means.in_a_row = 16384;
  EXPECT_EQ(bounded(one, means).steps, 4096U);
  EXPECT_EQ(bounded(one, means).launches, 4U);
  means.in_a_row = 1024;
  EXPECT_EQ(bounded(one, means).steps, 1024U);
  EXPECT_EQ(bounded(one, means).launches, 1U);
}

TEST(Neighbour, its_footprint_becomes_what_the_means_allow_unless_its_operation_needs_more) {
  NeighbourMeans means = generous();
  means.bytes = std::uint64_t{3} << 20U;
  Neighbour one = settled({Operation::store, Pattern::stream});
  one.footprint = std::uint64_t{1} << 30U;
  EXPECT_EQ(bounded(one, means).footprint, std::uint64_t{3} << 20U);
  EXPECT_EQ(impossible(bounded(one, means), means), "");
  const Neighbour pages = settled({Operation::store, Pattern::page});
  EXPECT_EQ(bounded(pages, means).footprint, std::uint64_t{16} << 20U);
  EXPECT_THAT(impossible(bounded(pages, means), means),
              HasSubstr("its footprint is larger than the"));
}

TEST(Neighbour, operations_are_read_by_name) {
  for (const OperationRow& row : operations()) {
    EXPECT_EQ(parse_operation(row.name).value(), row.operation);
  }
  const auto refused = parse_operation("storm");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
  EXPECT_THAT(
      refused.error().message,
      HasSubstr(
          "'storm' is not an operation of a neighbour; the operations are load, store, atomic"));
}

TEST(Neighbour, only_what_uses_memory_of_the_host_lies_there) {
  for (const OperationRow& row : operations()) {
    const auto launch = neighbour_launch(settled({row.operation}), generous(), "n", "n.ptx");
    EXPECT_EQ(launch.buffers.front().host, row.need == Need::host_memory) << row.name;
  }
}

TEST(Neighbour, its_launch_file_reads_back_as_its_launch) {
  for (const Neighbour& one : many(60)) {
    const auto launch = neighbour_launch(one, generous(), "n", "n.ptx");
    ASSERT_TRUE(gpu::validate(launch)) << gpu::validate(launch).error().message;
    const auto text = gpu::launch_to_json(launch);
    ASSERT_TRUE(text) << text.error().message;
    const auto back = gpu::parse_launch_json(*text, "n.json");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, launch);
  }
}

TEST(Neighbour, lanes_are_told_by_the_spec_where_its_memory_lies) {
  EXPECT_EQ(spec_prefix(Operation::atomic), "launch");
  EXPECT_EQ(spec_prefix(Operation::host_store), "launch");
  EXPECT_EQ(spec_prefix(Operation::copy_in), "copy_in");
  EXPECT_EQ(spec_prefix(Operation::copy_out), "copy_out");
}

TEST(Neighbour, its_words_say_what_it_does) {
  Neighbour one;
  one.operation = Operation::atomic;
  one.pattern = Pattern::random;
  one.footprint = 4 << 20;
  one.blocks = 264;
  one.threads = 256;
  one.apart = 1;
  one.in_flight = 4;
  one.steps = 16;
  one.launches = 2;
  EXPECT_EQ(short_name(one), "atomic-random-4MiB-264x256");
  EXPECT_EQ(in_words(one),
            "264 blocks of 256 threads add to words and take the old value at random places within "
            "4 MiB, every thread at a place of its own, 4 at a time; 16 accesses per thread, "
            "2 launches per run");
  Neighbour copy = settled({Operation::copy_in, Pattern::stream, 4096});
  EXPECT_EQ(in_words(copy), "4 KiB are copied from the host by a copy engine, 1 time per run");
}

// --- What a kernel touches, by the emulator and by a reference that knows no PTX.

using Touched = std::set<std::pair<emulate::MemorySpace, std::uint64_t>>;

class Toucher : public emulate::TraceSink {
 public:
  Result<void> begin_kernel(const emulate::TraceHeader& header) override {
    header_ = header;
    return {};
  }
  Result<void> consume(const emulate::TraceChunk& chunk) override {
    std::uint32_t warp = 0;
    emulate::visit_events(chunk, warp, *this);
    return {};
  }
  void run(const emulate::RunEvent&) {}
  void access(const emulate::AccessEvent& event) {
    const auto& instruction = header_.instructions[event.instruction];
    if (event.space == emulate::MemorySpace::shared || event.space == emulate::MemorySpace::param) {
      return;
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
      if ((event.mask >> lane & 1U) == 0) continue;
      touched.insert({event.space, event.addresses[lane]});
      ++accesses;
      last_bytes = instruction.bytes;
    }
  }
  Touched touched;
  std::uint64_t accesses = 0;
  std::uint32_t last_bytes = 0;

 private:
  emulate::TraceHeader header_;
};

// Where thread `thread` of the grid goes, step by step.
std::vector<std::uint64_t> places_of_thread(const Neighbour& one, const NeighbourMeans& means,
                                            std::uint64_t thread) {
  __extension__ using Wide = unsigned __int128;
  const Places places = places_of(one, means);
  const std::uint64_t walker = one.apart != 0 ? thread : thread / 32;
  const std::uint64_t walkers = one.blocks * one.threads / (one.apart != 0 ? 1 : 32);
  const bool drawn = one.pattern == Pattern::random || one.pattern == Pattern::chase ||
                     one.pattern == Pattern::slice;
  std::vector<std::uint64_t> offsets;
  std::uint64_t x = (walker + 1) * walker_seed;
  for (std::uint64_t step = 0; step < one.steps; ++step) {
    std::uint64_t place = (walker + step * walkers) % places.places;
    if (drawn) {
      x = x * step_factor + step_summand;
      place = static_cast<std::uint64_t>(static_cast<Wide>(x) * places.places >> 64U);
    }
    offsets.push_back(one.pattern == Pattern::slice ? means.slice_lines[place]
                                                    : place * places.place_bytes);
  }
  return offsets;
}

Touched expected(const Neighbour& one, const NeighbourMeans& means, std::uint64_t base,
                 emulate::MemorySpace space) {
  Touched out;
  const std::uint32_t bytes = row_of(one.operation).bytes;
  for (std::uint64_t thread = 0; thread < one.blocks * one.threads; ++thread) {
    for (const std::uint64_t offset : places_of_thread(one, means, thread)) {
      const std::uint64_t within = one.apart != 0 ? 0 : thread % 32 * bytes;
      if (one.operation != Operation::bulk_copy) {
        out.insert({space, base + offset + within});
      } else if (thread % 32 == 0) {
        for (std::uint64_t at = 0; at < 1024; at += 16) out.insert({space, base + offset + at});
      }
    }
  }
  return out;
}

struct Emulated {
  emulate::Outcome outcome;
  Toucher toucher;
  std::uint64_t variable = 0;
};

Emulated emulated(const Neighbour& one, const NeighbourMeans& means) {
  Emulated out;
  const std::string text = neighbour_ptx(one);
  const auto module = ptx::parse_whole(text, "n.ptx");
  EXPECT_TRUE(module) << module.error().message << "\n" << text;
  for (const std::uint64_t address : emulate::global_variable_addresses(*module)) {
    out.variable = std::max(out.variable, address);
  }
  auto run = emulate::run(*module, neighbour_launch(one, means, "n", "n.ptx"), {}, &out.toucher);
  EXPECT_TRUE(run) << run.error().message << "\n" << text;
  for (const auto& finding : run->findings) ADD_FAILURE() << emulate::describe(finding, text);
  out.outcome = std::move(*run);
  return out;
}

// Small, with places left over and wrapped around.
Neighbour small(Operation operation, Pattern pattern, std::uint64_t apart, std::uint64_t flying) {
  Neighbour one;
  one.operation = operation;
  one.pattern = pattern;
  one.footprint = 5120;
  one.stride = 512;
  one.blocks = 2;
  one.threads = 64;
  one.apart = apart;
  one.in_flight = flying;
  one.steps = 16;
  return settled(one);
}

class NeighbourKernel : public ::testing::TestWithParam<OperationRow> {};

TEST_P(NeighbourKernel, touches_what_its_pattern_says_and_nothing_else) {
  const OperationRow& row = GetParam();
  const NeighbourMeans means = generous();
  for (const Pattern pattern : row.patterns) {
    for (const std::uint64_t apart : {std::uint64_t{0}, std::uint64_t{1}}) {
      const Neighbour one = small(row.operation, pattern, apart, apart == 0 ? 1 : 4);
      const Emulated seen = emulated(one, means);
      const auto& addresses = seen.outcome.addresses;
      const bool local = row.operation == Operation::local;
      const bool constant = row.operation == Operation::constant;
      const auto space = local      ? emulate::MemorySpace::local
                         : constant ? emulate::MemorySpace::constant
                                    : emulate::MemorySpace::global;
      std::uint64_t base = addresses[0];
      if (local || constant) base = 0;
      if (row.operation == Operation::variable) base = seen.variable;
      Touched wanted = expected(one, means, base, space);
      Touched found = seen.toucher.touched;
      if (pattern == Pattern::slice) {  // it reads the table, too
        for (std::size_t i = 0; i < means.slice_lines.size(); ++i) {
          found.erase({space, addresses[1] + i * 4});
        }
      }
      if (row.operation == Operation::bulk_copy) {
        // The emulator names the first byte of what each of its pieces copies.
        Touched lines;
        for (const auto& [where, address] : found) lines.insert({where, address / 16 * 16});
        found = std::move(lines);
      }
      EXPECT_TRUE(found == wanted)
          << row.name << "-" << row_of(pattern).name << " apart " << one.apart << ": "
          << found.size() << " addresses, not " << wanted.size() << "\n"
          << neighbour_ptx(one);
    }
  }
}

std::string operation_name(const ::testing::TestParamInfo<OperationRow>& row) {
  return std::string(row.param.name);
}
INSTANTIATE_TEST_SUITE_P(all, NeighbourKernel,
                         ::testing::ValuesIn(operations().begin(), operations().end() - 2),
                         operation_name);

TEST(NeighbourKernels, stores_and_sums_leave_what_they_say) {
  const auto word = [](const Emulated& run, std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, run.outcome.buffers[0].data() + at, 4);
    return value;
  };
  Neighbour one = small(Operation::reduction, Pattern::stream, 0, 1);
  one.footprint = 4096;  // 32 places for 4 warps of 16 steps: each twice
  const Emulated sums = emulated(one, generous());
  for (std::size_t at = 0; at < 4096; at += 4) ASSERT_EQ(word(sums, at), 2U) << at;
  one.operation = Operation::atomic;
  const Emulated atomics = emulated(one, generous());
  for (std::size_t at = 0; at < 4096; at += 4) ASSERT_EQ(word(atomics, at), 2U) << at;
  one.operation = Operation::store;
  EXPECT_NE(word(emulated(one, generous()), 4092), 0U);
  one.operation = Operation::byte;
  const Emulated bytes = emulated(one, generous());
  EXPECT_EQ(bytes.toucher.last_bytes, 1U);
  one.operation = Operation::load;
  EXPECT_EQ(word(emulated(one, generous()), 0), 0U);
}

TEST(NeighbourKernels, a_launch_of_many_runs_its_kernel_so_often) {
  Neighbour one = small(Operation::reduction, Pattern::stream, 0, 1);
  one.launches = 4;
  EXPECT_EQ(neighbour_launch(one, generous(), "n", "n.ptx").kernels.size(), 4U);
}

}  // namespace
}  // namespace demarc::study
