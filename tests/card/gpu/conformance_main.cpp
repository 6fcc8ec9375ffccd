// demarc_conformance: the contract of every back end, on a real card. Modes exclude each other
// within a process, so each runs in one of its own; for mps a daemon is started and stopped.
//
//   demarc_conformance [--launches N]     all modes; N launches under random masks, a million
//   demarc_conformance --mode M           one of them, in this process
//
// Exit code 0: every mode keeps its contract; 2: no GPU; 3: one does not.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "conformance.hpp"
#include "demarc/base/files.hpp"
#include "demarc/base/process.hpp"
#include "demarc/card/proof.hpp"
#include "demarc/driver/in_child.hpp"

namespace demarc::test {
namespace {

constexpr std::uint64_t max_wrong_masks = 1000;

struct Settings {
  cuda::Mode mode = cuda::Mode::none;
  std::uint64_t launches = 1000000;
  std::uint32_t card_sms = 0;  // of the card outside MPS
};
Settings& settings() {
  static Settings instance;
  return instance;
}

class Contract : public testing::Test {
 protected:
  void SetUp() override {
    cuda::CardOptions options;
    options.use_masks = partition::traits_of(settings().mode).hook == partition::HookUse::needed;
    auto opened = cuda::open_card(0, options);
    ASSERT_TRUE(opened) << opened.error().message;
    card = *opened;
  }
  std::vector<gpu::SmIndex> sms_used(cuda::CuStream stream) const {
    const auto& gpu = card->gpu();
    const auto counts = cuda::placement_counters(gpu, card->kernels()).value();
    auto address = counts.address();
    cuda::DevicePointer none = 0;
    std::uint64_t spin = 3000;
    void* arguments[] = {&address, &none, &spin};
    EXPECT_EQ(gpu->api().cuLaunchKernel(card->kernels().where().handle(), 8 * gpu->sm_count(), 1, 1,
                                        64, 1, 1, 0, stream, arguments, nullptr),
              0);
    EXPECT_EQ(gpu->api().cuStreamSynchronize(stream), 0);
    return cuda::read_placement(counts, card->kernels())->used_sms();
  }
  cuda::CardPointer card;
};

class MaskContract : public Contract {};
class MpsContract : public Contract {};

TEST_F(Contract, is_kept) {
  const auto backend = cuda::make_backend(card, settings().mode);
  ASSERT_TRUE(backend) << backend.error().message;
  conforms(card, **backend, 60);
}

TEST_F(MpsContract, a_client_stays_within_its_share) {
  const char* share = std::getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
  ASSERT_NE(share, nullptr) << "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE is not set";
  const auto used = sms_used(card->stream().handle()).size();
  std::printf("| client of %s %%: %zu of %u SMs used\n", share, used, settings().card_sms);
  // The driver rounds to whole TPCs.
  EXPECT_LE(100.0 * (static_cast<double>(used) - 2), std::atof(share) * settings().card_sms);
}

TEST_F(MaskContract, random_masks_never_leak) {
  random_masks_never_leak(card, settings().launches, 11);
  if (!HasFailure()) {
    std::printf("| %llu launches under random masks, 0 of %llu blocks outside\n",
                static_cast<unsigned long long>(settings().launches),
                static_cast<unsigned long long>(settings().launches * card->gpu()->sm_count()));
  }
}

// As if the driver had mixed up two TPCs: one of the set gets the other's bit.
TEST_F(MaskContract, wrong_masks_are_refused) {
  std::string folder = (std::filesystem::temp_directory_path() / "demarc-masks-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  cuda::CardOptions options;
  options.cache_folder = folder;
  const std::string path = cuda::facts_path(*card->gpu(), options.cache_folder);
  const auto tpcs = card->topology().tpc_count();
  const std::uint64_t rounds = std::min<std::uint64_t>(settings().launches, max_wrong_masks);
  Random random(12);
  std::uint64_t refused = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    // The bits of the first TPC and of the last one are compared when a card is opened.
    const gpu::TpcIndex inside(1 + random.below(tpcs - 2));
    gpu::TpcIndex outside(1 + random.below(tpcs - 3));
    if (outside >= inside) ++outside;
    TpcSet set = random_set(random, tpcs);
    set.insert(inside);
    set.erase(outside);
    cuda::CardFacts facts = card->facts();
    auto& known = facts.device.topology.tpcs;
    std::swap(known[inside].bit, known[outside].bit);
    ASSERT_TRUE(write_file(path, facts_to_json(facts)));
    const auto wrong = cuda::Card::open(card->gpu(), options);
    ASSERT_TRUE(wrong) << wrong.error().message;
    const auto proof = prove_partition(*wrong, set);
    refused += !proof && proof.error().kind == ErrorKind::check_failed ? 1U : 0U;
  }
  std::filesystem::remove_all(folder);
  EXPECT_EQ(refused, rounds);
  std::printf("| %llu wrong masks, %llu refused\n", static_cast<unsigned long long>(rounds),
              static_cast<unsigned long long>(refused));
}

TEST_F(MaskContract, streams_of_libraries_and_the_default_stream_obey_the_process_mask) {
  const TpcSet set{1, 3};
  const auto wanted = gpu::sms_of(card->topology(), set);
  const auto mask = cuda::ProcessMask::set(card, set);
  ASSERT_TRUE(mask) << mask.error().message;
  cuda::CuStream library = nullptr;
  ASSERT_EQ(card->gpu()->api().cuStreamCreateWithPriority(&library, 0, 0), 0);
  EXPECT_EQ(sms_used(library), wanted);
  EXPECT_EQ(sms_used(nullptr), wanted);
  EXPECT_EQ(card->gpu()->api().cuStreamDestroy_v2(library), 0);
}

TEST_F(MaskContract, a_destroyed_streams_mask_is_not_a_later_streams) {
  const auto& api = card->gpu()->api();
  const auto* masks = card->stream_masks().value();
  std::printf("| masks of streams are kept by %s\n",
              masks->uses_hook() ? "the launch hook" : "the driver's stream objects");
  std::vector<cuda::CuStream> streams(64);
  for (const bool masked : {true, false}) {
    for (auto& stream : streams) {
      ASSERT_EQ(api.cuStreamCreateWithPriority(&stream, cuda::cu_stream_non_blocking, 0), 0);
      if (masked) {
        ASSERT_TRUE(masks->set(stream, {2}));
      } else {
        EXPECT_EQ(sms_used(stream).size(), card->gpu()->sm_count());
      }
    }
    for (auto* stream : streams) ASSERT_EQ(api.cuStreamDestroy_v2(stream), 0);
  }
}

TEST_F(MaskContract, a_failed_launch_and_an_error_leave_no_mask) {
  const auto& gpu = card->gpu();
  {
    const auto next = cuda::NextMask::set(card, {0});
    ASSERT_TRUE(next);
    EXPECT_NE(gpu->api().cuLaunchKernel(card->kernels().idle().handle(), 1, 1, 1, 4096, 1, 1, 0,
                                        card->stream().handle(), nullptr, nullptr),
              0);
  }
  EXPECT_EQ(sms_used(card->stream().handle()).size(), gpu->sm_count());
}

TEST_F(MaskContract, what_is_unknown_is_refused) {
  const auto* masks = card->stream_masks().value();
  EXPECT_FALSE(masks->set(card->stream().handle(), {}));
  EXPECT_FALSE(masks->set(card->stream().handle(), TpcSet{card->topology().tpcs.next_key()}));
  EXPECT_FALSE(masks->set(nullptr, {0}));
  EXPECT_FALSE(cuda::ProcessMask::set(card, {}));
}

// This program again, with these arguments; both streams are kept.
Result<Process> start_self(const std::string& mode, const Environment& environment) {
  ProcessOptions options;
  options.set = environment;
  options.output = options.error = ChildStream::kept;
  options.kept_bytes = std::size_t{1} << 20;
  return Process::spawn(
      {"/proc/self/exe", "--mode", mode, "--sms", std::to_string(settings().card_sms), "--launches",
       std::to_string(settings().launches)},
      options);
}

// Prints one line and what the child has to say; true when it kept the contract.
bool show(const std::string& name, Result<Process> child) {
  const bool good = child && child->wait(-1)->exit_code == 0;
  std::printf("%-12s %s\n", name.c_str(), good ? "conforms" : "DOES NOT CONFORM");
  std::istringstream output(child ? child->kept() : child.error().message);
  for (std::string line; std::getline(output, line);) {
    if (!good || line.rfind("| ", 0) == 0) std::printf("    %s\n", line.c_str());
  }
  std::fflush(stdout);
  return good;
}

bool run_mps() {
  std::string folder = (std::filesystem::temp_directory_path() / "demarc-mps-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return false;
  ProcessOptions options;
  options.own_group = false;
  options.set = {{"CUDA_MPS_PIPE_DIRECTORY", folder}, {"CUDA_MPS_LOG_DIRECTORY", folder}};
  options.error = ChildStream::null;
  const auto started = run_process({"nvidia-cuda-mps-control", "-d"}, options);
  if (!started || started->exit_code != 0) {
    std::printf("%-12s NOT RUN: nvidia-cuda-mps-control -d does not start here\n", "mps");
    return true;
  }
  const auto client = [&](const char* percentage) {
    Environment environment = options.set;
    environment.emplace_back("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percentage);
    return start_self("mps", environment);
  };
  bool good = show("mask in mps", start_self("mask", options.set));
  good &= show("mps", client("30"));
  auto first = client("50");
  auto second = client("50");
  good &= show("mps, 1 of 2", std::move(first));
  good &= show("mps, 2 of 2", std::move(second));
  static_cast<void>(run_process({"/bin/sh", "-c", "echo quit | nvidia-cuda-mps-control"}, options));
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return good;
}

// Among the tests those that the mode's contract consists of.
std::string tests_of(cuda::Mode mode) {
  const partition::ModeTraits& traits = partition::traits_of(mode);
  if (traits.changes) return "Contract.*:MaskContract.*";
  if (traits.shares) return "Contract.*:MpsContract.*";
  return "Contract.*";
}

Result<std::uint32_t> count_sms() {
  DEMARC_TRY(const auto driver, cuda::Driver::load());
  DEMARC_TRY(const auto gpu, cuda::Gpu::open(driver, 0));
  return gpu->sm_count();
}

int run_all() {
  const auto sms = cuda::in_child<std::uint32_t>([] { return count_sms(); });
  if (!sms) {
    std::printf("%s\n", sms.error().message.c_str());
    return static_cast<int>(sms.error().kind);
  }
  settings().card_sms = *sms;
  bool good = true;
  for (const cuda::Mode mode : partition::all_modes()) {
    if (partition::traits_of(mode).leased) continue;  // it has no streams
    const std::string name(to_string(mode));
    good &= partition::traits_of(mode).shares ? run_mps() : show(name, start_self(name, {}));
  }
  return good ? 0 : 3;
}

}  // namespace
}  // namespace demarc::test

int main(int argc, char** argv) {
  using demarc::test::settings;
  testing::InitGoogleTest(&argc, argv);
  bool one = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--launches") settings().launches = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--sms") {
      settings().card_sms = static_cast<std::uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
    }
    if (name != "--mode") continue;
    const auto mode = demarc::partition::parse_mode(argv[i + 1]);
    if (!mode) {
      std::cerr << mode.error().message << "\n";
      return 1;
    }
    settings().mode = *mode;
    one = true;
  }
  if (!one) return demarc::test::run_all();
  testing::GTEST_FLAG(filter) = demarc::test::tests_of(settings().mode);
  return RUN_ALL_TESTS();
}
