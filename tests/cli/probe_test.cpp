// demarc probe memory on simulated devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "demarc/base/gf2.hpp"
#include "demarc/gpu/device.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

using ::testing::HasSubstr;

TEST(ProbeVerb, TheFunctionsOfASimulatedGtx1080AreFoundExactlyAndWrittenForUse) {
  const gpu::AddressMap published = *gpu::find_device("gtx1080").value().address_map;
  for (const std::string seed : {"1", "2"}) {
    const auto folder = fresh_folder("probe_verb");
    const std::string file = (folder / "found.json").string();
    const std::string report = (folder / "report.json").string();
    std::vector<std::string> arguments{"probe", "memory", "--device", "sim:gtx1080", "--seed",
                                       seed,    "-o",     file,       "--report",    report};
    if (seed == "2") arguments.emplace_back("--json");
    const Outcome outcome = run_demarc(arguments);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::string json = read_file(report).value();
    EXPECT_TRUE(json.starts_with("{\"schema\":\"demarc.probe.memory/1\"")) << json.substr(0, 60);
    EXPECT_EQ(outcome.out == json, seed == "2") << outcome.out.substr(0, 200);
    const auto found = gpu::read_device(file);
    ASSERT_TRUE(found) << found.error().message;
    const gpu::AddressMap& map = found->address_map.value();
    EXPECT_TRUE(gf2_same_space(map.bank.rows, published.bank.rows));
    EXPECT_TRUE(gf2_same_space(map.set.rows, published.set.rows));
    EXPECT_TRUE(gf2_same_space(map.module.rows, published.module.rows));
    EXPECT_EQ(map.cache_ways, 16U);
    EXPECT_EQ(map.miss_registers, 16U);
  }
}

TEST(ProbeVerb, ADeviceThatCannotBeSimulatedEndsWith2AndSaysWhatItsDescriptionLacks) {
  const Outcome outcome = run_demarc({"probe", "memory", "--device", "sim:h200"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("memory_system"));
  EXPECT_EQ(run_demarc({"probe", "memory", "--device", "sim:zzz"}).exit_code, 1);
}

}  // namespace
}  // namespace demarc::test
