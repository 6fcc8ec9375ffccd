// Calls of the driver's functions as their callback shows them, and which give host memory.
#include "demarc/driver/driver_call.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "demarc/base/files.hpp"
#include "demarc/guest/host_memory.hpp"
#include "paths.hpp"
#include "process/refused_modules.hpp"
#include "supervised.hpp"

namespace demarc::cuda {
namespace {

// Parameters of a callback, element by element as the driver lays them out.
struct PlantedDriverCall {
  std::uint64_t arguments[8] = {};
  CuResult result = 999;
  int answered = 0;
  std::array<std::uint64_t, 13> params = {104};

  explicit PlantedDriverCall(const char* name, bool leaving = false) {
    params[5] = reinterpret_cast<std::uint64_t>(&result);
    params[6] = reinterpret_cast<std::uint64_t>(name);
    params[7] = reinterpret_cast<std::uint64_t>(arguments);
    params[10] = 39 | (leaving ? std::uint64_t{1} << 32 : 0);
    params[11] = reinterpret_cast<std::uint64_t>(&answered);
  }
  [[nodiscard]] std::optional<DriverCall> read() const { return DriverCall::read(params.data()); }
};

TEST(DriverCalls, show_name_site_and_arguments) {
  PlantedDriverCall planted("cuMemHostAlloc");
  planted.arguments[1] = 4096;
  planted.arguments[2] = std::uint64_t{7} << 32 | 5;
  const auto call = planted.read();
  ASSERT_TRUE(call);
  EXPECT_EQ(call->name(), "cuMemHostAlloc");
  EXPECT_EQ(call->function(), DriverFunction::cuMemHostAlloc);
  EXPECT_EQ(call->rule(), Rule::passes);
  EXPECT_TRUE(call->does(does::pins_host_memory | does::launches));
  EXPECT_FALSE(call->does(does::launches));
  EXPECT_FALSE(call->per_thread());
  for (const char* name : {"cuMemsetD8_v2_ptds", "cuMemsetD8_v2_ptsz"}) {
    EXPECT_EQ(PlantedDriverCall(name).read()->function(), DriverFunction::cuMemsetD8_v2);
    EXPECT_TRUE(PlantedDriverCall(name).read()->per_thread());
  }
  EXPECT_FALSE(call->leaving());
  struct Given {
    void** address;
    std::size_t bytes;
    unsigned flags, next;
  };
  const auto given = call->parameters<Given>();
  EXPECT_EQ(given.bytes, 4096U);
  EXPECT_EQ(given.flags, 5U);
  EXPECT_EQ(given.next, 7U);
  EXPECT_TRUE(PlantedDriverCall("cuInit", true).read()->leaving());
  PlantedDriverCall far("cuInit");
  far.params[10] = 0xffffffff;  // no bit of the function's number says that it is left
  EXPECT_FALSE(far.read()->leaving());
}

TEST(DriverCalls, an_answer_is_the_drivers_result_and_keeps_it_from_the_call) {
  const PlantedDriverCall planted("cuMemHostAlloc");
  planted.read()->answer(801);
  EXPECT_EQ(planted.result, 801);
  EXPECT_EQ(planted.answered, 1);
}

TEST(DriverCalls, parameters_of_another_layout_are_not_read) {
  EXPECT_FALSE(DriverCall::read(nullptr));
  for (const std::size_t element : {5U, 6U, 7U, 11U}) {
    PlantedDriverCall planted("cuInit");
    planted.params[element] = 0;
    EXPECT_FALSE(planted.read()) << element;
  }
  PlantedDriverCall planted("cuInit");
  planted.params[0] = 95;
  EXPECT_FALSE(planted.read());
  planted.params[0] = 96;
  EXPECT_TRUE(planted.read());
}

// Found on an H200, driver 580.159: programs were stopped at them.
TEST(DriverCalls, only_functions_without_arguments_show_none) {
  for (const auto& [name, read] : {std::pair{"cuCtxSynchronize", true},
                                   {"cuProfilerStart", true},
                                   {"cuProfilerStop", true},
                                   {"cuCtxResetPersistingL2Cache", true},
                                   {"cuGLInit", true},
                                   {"cuMemFree_v2", false},
                                   {"cuCtxSynchronize_v2", false}}) {
    PlantedDriverCall planted(name);
    planted.params[7] = 0;
    EXPECT_EQ(planted.read().has_value(), read) << name;
  }
}

bool gives(const char* name) {
  return gives_host_memory(*PlantedDriverCall(name).read());
}

TEST(HostMemory, comes_from_functions_of_every_version) {
  for (const char* name :
       {"cuMemAllocHost", "cuMemAllocHost_v2", "cuMemHostAlloc", "cuMemHostRegister",
        "cuMemHostRegister_v2", "cuMemAllocManaged", "cuMemImportFromShareableHandle",
        "cuMemPoolImportFromShareableHandle", "cuImportExternalMemory", "cuGraphicsMapResources",
        "cuGraphicsMapResources_ptsz", "cuGLMapBufferObject_v2", "cuGLMapBufferObjectAsync_v2_ptsz",
        "cuGraphicsEGLRegisterImage", "cuEGLStreamConsumerAcquireFrame",
        "cuEGLStreamProducerReturnFrame"}) {
    EXPECT_TRUE(gives(name)) << name;
  }
  for (const char* name :
       {"cuMemAlloc_v2", "cuMemAllocAsync", "cuMemHostUnregister", "cuMemHostGetDevicePointer_v2",
        "cuMemcpyHtoD_v2", "cuLaunchKernel", "cuLaunchHostFunc", "cuMemAlloc", "cu", ""}) {
    EXPECT_FALSE(gives(name)) << name;
  }
}

// Type of the allocation, kinds of handles, type and number of the location.
struct alignas(8) Properties : std::array<std::uint32_t, 4> {};
constexpr Properties on_card = {{{1, 0, 1, 0}}};
constexpr Properties on_host = {{{1, 0, 2, 0}}};
constexpr Properties on_host_node = {{{1, 0, 3, 0}}};
constexpr Properties managed_pool = {{{2, 0, 1, 0}}};

// With an argument that points to `what`.
bool gives(const char* name, std::size_t argument, const void* what, std::uint64_t after = 0) {
  PlantedDriverCall planted(name);
  planted.arguments[argument] = reinterpret_cast<std::uint64_t>(what);
  if (argument < 7) planted.arguments[argument + 1] = after;
  return gives_host_memory(*planted.read());
}

TEST(HostMemory, is_what_allocations_and_pools_off_the_card_are) {
  for (const auto& [name, argument] :
       {std::pair{"cuMemCreate", 2U}, std::pair{"cuMemPoolCreate", 1U},
        std::pair{"cuGraphAddMemAllocNode", 4U}}) {
    EXPECT_FALSE(gives(name, argument, on_card.data())) << name;
    EXPECT_TRUE(gives(name, argument, on_host.data())) << name;
    EXPECT_TRUE(gives(name, argument, on_host_node.data())) << name;
    EXPECT_TRUE(gives(name, argument, managed_pool.data())) << name;
  }
}

TEST(HostMemory, is_what_pools_of_another_place_give) {
  for (const char* name : {"cuMemGetDefaultMemPool", "cuMemGetMemPool"}) {
    constexpr std::uint32_t card[] = {1, 0};
    constexpr std::uint32_t host[] = {2, 0};
    EXPECT_FALSE(gives(name, 1, card, 1)) << name;
    EXPECT_TRUE(gives(name, 1, card, 2)) << name << ", managed";
    EXPECT_TRUE(gives(name, 1, host, 1)) << name;
  }
}

// The driver refuses such a call itself.
TEST(HostMemory, is_not_what_calls_without_a_place_ask_for) {
  for (const auto& [name, argument] :
       {std::pair{"cuMemCreate", 2U}, std::pair{"cuMemPoolCreate", 1U},
        std::pair{"cuMemGetDefaultMemPool", 1U}, std::pair{"cuMemGetMemPool", 1U},
        std::pair{"cuGraphAddMemAllocNode", 4U}, std::pair{"cuGraphAddNode", 4U},
        std::pair{"cuGraphAddNode_v2", 5U}}) {
    EXPECT_FALSE(gives(name, argument, nullptr, 1)) << name;
  }
}

TEST(HostMemory, is_what_nodes_of_graphs_allocate_off_the_card) {
  const auto node = [](std::uint32_t type, const Properties& properties) {
    CuAnyNode any{};
    any.type = static_cast<int>(type);
    std::memcpy(&any.allocation, &properties, sizeof properties);
    return any;
  };
  const auto kernel = node(0, on_host);
  const auto here = node(10, on_card);
  const auto there = node(10, on_host);
  for (const auto& [name, argument] :
       {std::pair{"cuGraphAddNode", 4U}, std::pair{"cuGraphAddNode_v2", 5U}}) {
    EXPECT_FALSE(gives(name, argument, &kernel)) << name;
    EXPECT_FALSE(gives(name, argument, &here)) << name;
    EXPECT_TRUE(gives(name, argument, &there)) << name;
  }
}

constexpr const char* plain_module = R"(.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 own;
)";
const std::string managed_module =  // NOLINT(cert-err58-cpp)
    std::string(plain_module) + ".visible .global .attribute(.managed) .align 4 .u32 total;\n" +
    ".visible .global .attribute(.managed) .align 4 .u32 also;\n";
constexpr const char* why_managed = "it has managed variables: also, total";

// For a call whose second argument is this pointer.
std::optional<std::string> refused(const char* name, const void* what) {
  PlantedDriverCall planted(name);
  planted.arguments[1] = reinterpret_cast<std::uint64_t>(what);
  return refused_module(*planted.read());
}

// The driver refuses it itself. Another process asks, as one that reads it ends.
bool passes_null(const char* name) {
  return test::Supervised::apart([&] { return refused(name, nullptr) ? 1 : 0; }) == 0;
}

TEST(ManagedModules, are_refused_by_name_whatever_loads_them) {
  for (const char* name :
       {"cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleLoadFatBinary", "cuLibraryLoadData"}) {
    EXPECT_EQ(refused(name, managed_module.c_str()), why_managed) << name;
    EXPECT_EQ(refused(name, plain_module), std::nullopt) << name;
    EXPECT_THAT(refused(name, "what is this"), testing::Optional(testing::HasSubstr("the module")))
        << name;
    EXPECT_TRUE(passes_null(name)) << name;
  }
  EXPECT_EQ(refused("cuModuleGetGlobal_v2", managed_module.c_str()), std::nullopt);
}

TEST(ManagedModules, are_refused_by_name_in_files_too) {
  const auto folder = test::fresh_folder("managed_modules");
  const auto path = [&](const char* name, const std::string& text) {
    const std::string file = (folder / name).string();
    EXPECT_TRUE(write_file(file, text));
    return file;
  };
  const std::string managed = path("managed.ptx", managed_module);
  const std::string plain = path("plain.ptx", plain_module);
  for (const char* name : {"cuModuleLoad", "cuLibraryLoadFromFile"}) {
    EXPECT_EQ(refused(name, managed.c_str()), why_managed) << name;
    EXPECT_EQ(refused(name, plain.c_str()), std::nullopt) << name;
    EXPECT_THAT(refused(name, "/nowhere/to.be"), testing::Optional(testing::HasSubstr("nowhere")))
        << name;
    EXPECT_TRUE(passes_null(name)) << name;
  }
}

// Under a mask of TPCs, where descriptors do not tell which kernels launch others.
TEST(LaunchingModules, are_refused_by_name_whatever_loads_them) {
  const std::string launching =
      std::string(plain_module) +
      ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);\n";
  const std::string file = test::fresh_folder("launching_modules") / "launching.ptx";
  const std::string plain_file = test::fresh_folder("plain_modules") / "plain.ptx";
  ASSERT_TRUE(write_file(file, launching) && write_file(plain_file, plain_module));
  const auto said = [](std::string_view name, const void* what) {
    PlantedDriverCall planted(name.data());
    planted.arguments[1] = reinterpret_cast<std::uint64_t>(what);
    return launching_module(*planted.read());
  };
  for (const std::string_view name :
       {"cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleLoadFatBinary", "cuLibraryLoadData",
        "cuModuleLoad", "cuLibraryLoadFromFile"}) {
    const bool of_file = name == "cuModuleLoad" || name == "cuLibraryLoadFromFile";
    EXPECT_EQ(said(name, of_file ? file.c_str() : launching.c_str()),
              "its kernels may launch kernels, which would run outside of the partition; it calls: "
              "__cudaCDP2LaunchDeviceV2")
        << name;
    EXPECT_EQ(said(name, of_file ? plain_file.c_str() : plain_module), std::nullopt) << name;
    EXPECT_NE(said(name, "/no/code"), std::nullopt) << name << ", which cannot be read";
  }
  EXPECT_EQ(said("cuModuleGetGlobal_v2", launching.c_str()), std::nullopt);
}

}  // namespace
}  // namespace demarc::cuda
