// Kernels of a program of which the driver's compiler keeps registers in local memory of its own.
#include "program_on_share.hpp"

namespace demarc::cuda {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class SpillingKernels : public test::ProgramCalls<test::ColorKind::remainders> {
 protected:
  SpillingKernels() { real_driver = own; }
  static inline DriverApi real_driver;
};

// The stand-in's compiler keeps values of %busy in local memory where it optimises, of %stack
// always.
TEST_F(SpillingKernels, are_compiled_with_less_optimisation_where_that_helps) {
  const std::string busy = ".visible .entry busy(.param .u64 p)\n{\n.reg .b64 %busy;\nret;\n}\n";
  const std::string stack = ".visible .entry stack(.param .u64 p)\n{\n.reg .b64 %stack;\nret;\n}\n";
  const std::string head = test::module_head;
  const auto finds = [&](CuModule module, const char* name) {
    CuFunction function = nullptr;
    return api.cuModuleGetFunction(&function, module, name);
  };
  const CuModule alone = loaded(head + busy);
  EXPECT_EQ(finds(alone, "busy"), cu_success);
  EXPECT_THAT(told,
              ElementsAre(HasSubstr("compiled with less optimisation, because some kernels would "
                                    "keep values in local memory, which has no colour: busy")));
  told.clear();
  const CuModule both = loaded(head + busy + stack);
  EXPECT_EQ(finds(both, "busy"), cu_success);
  EXPECT_EQ(finds(both, "stack"), 500);
  EXPECT_THAT(told, UnorderedElementsAre(HasSubstr("less optimisation"),
                                         HasSubstr("kernel 'stack': ptxas keeps 8 bytes")));
  told.clear();
  static std::vector<unsigned> options;
  options.clear();
  own.cuModuleLoadDataEx = [](CuModule* module, const void* image, unsigned count, int* names,
                              void** values) {
    options.push_back(count);
    return real_driver.cuModuleLoadDataEx(module, image, count, names, values);
  };
  const CuModule other = loaded(head + stack + test::kernel_of("k", "mov.u32 %r1, 1;"));
  EXPECT_EQ(finds(other, "k"), cu_success);
  EXPECT_EQ(finds(other, "stack"), 500);
  EXPECT_THAT(told, ElementsAre(HasSubstr("kernel 'stack': ptxas keeps 8 bytes")));
  EXPECT_THAT(options, ElementsAre(1, 2, 1)) << "less of it helped nothing";
}

TEST_F(SpillingKernels, of_a_module_are_named_up_to_eight) {
  for (const int count : {8, 9}) {
    std::string text = test::module_head;
    for (int k = 0; k < count; ++k) {
      text +=
          fmt::format(".visible .entry k{}(.param .u64 p)\n{{\n.reg .b64 %busy;\nret;\n}}\n", k);
    }
    told.clear();
    loaded(text);
    const std::string eight = "no colour: k0, k1, k2, k3, k4, k5, k6, k7";
    EXPECT_THAT(told, ElementsAre(EndsWith(eight + (count == 9 ? " and 1 more" : ""))));
  }
}

TEST_F(SpillingKernels, keep_the_programs_options_of_its_compiler) {
  const std::string text = std::string(test::module_head) +
                           ".visible .entry busy(.param .u64 p)\n{\n.reg .b64 %busy;\nret;\n}\n";
  static std::vector<std::pair<int, std::uintptr_t>> asked;
  static std::uintptr_t said;
  said = 76;
  own.cuModuleLoadDataEx = [](CuModule* module, const void* image, unsigned count, int* names,
                              void** values) {
    asked.clear();
    for (unsigned i = 0; i < count; ++i) {
      asked.emplace_back(names[i], reinterpret_cast<std::uintptr_t>(values[i]));
      if (names[i] == 4) values[i] = reinterpret_cast<void*>(++said);  // NOLINT: bytes of the log
    }
    return real_driver.cuModuleLoadDataEx(module, image, count, names, values);
  };
  int names[] = {4, 7, 12};
  void* values[] = {reinterpret_cast<void*>(100), reinterpret_cast<void*>(4),  // NOLINT
                    reinterpret_cast<void*>(1)};                               // NOLINT
  CuModule module = nullptr;
  ASSERT_EQ(api.cuModuleLoadDataEx(&module, text.c_str(), 3, names, values), cu_success);
  EXPECT_THAT(asked, ElementsAre(std::pair(4, 77U), std::pair(12, 1U), std::pair(7, 1U),
                                 std::pair(34, 0U)));
  EXPECT_EQ(values[0], reinterpret_cast<void*>(78)) << "what the driver says comes back";  // NOLINT
  EXPECT_EQ(values[1], reinterpret_cast<void*>(4));                                        // NOLINT
  CuLibrary library = nullptr;
  ASSERT_EQ(api.cuLibraryLoadData(&library, text.c_str(), names, values, 3, nullptr, nullptr, 0),
            cu_success);
  CuKernel kernel = nullptr;
  EXPECT_EQ(api.cuLibraryGetKernel(&kernel, library, "busy"), cu_success);
}

class ModuleCallsThatAllowSpills : public test::ProgramCalls<test::ColorKind::remainders> {
 protected:
  ModuleCallsThatAllowSpills() : ProgramCalls(8) {}
  static std::string keeping(const std::string& name, const std::string& registers) {
    return ".visible .entry " + name + "(.param .u64 p)\n{\n" + registers + "\nret;\n}\n";
  }
};

TEST_F(ModuleCallsThatAllowSpills, kernels_with_up_to_that_many_bytes_run_and_are_counted) {
  const CuModule module =
      loaded(test::module_head + keeping("spilling", ".reg .b64 %stack;") +
             keeping("wide", ".reg .b64 %stack16;") + keeping("none", ".reg .b64 %rd<2>;"));
  EXPECT_EQ(launch_line(function_of(module, "spilling"), 1, 1, DevicePointer{0}), cu_success);
  CuFunction function = nullptr;
  EXPECT_EQ(api.cuModuleGetFunction(&function, module, "wide"), 500);
  EXPECT_THAT(told, UnorderedElementsAre(
                        HasSubstr("kernel 'wide': ptxas keeps 16 bytes per thread in local memory"),
                        HasSubstr("kernel 'spilling': ptxas keeps 8 bytes per thread in local "
                                  "memory, which has no colour (--allow-spills)")));
  std::vector<std::string> counted;
  for (const RecordedName& one : record->names()) {
    if (one.what == Recorded::spilling_kernel) {
      counted.push_back(fmt::format("{} {}: {}", one.count, one.name, one.why));
    }
  }
  EXPECT_THAT(counted, ElementsAre("1 spilling: 8 bytes per thread"));
  told.clear();
  loaded(test::module_head + keeping("a", ".reg .b64 %stack;") + keeping("b", ".reg .b64 %stack;"));
  EXPECT_THAT(told,
              ElementsAre(EndsWith("kernel 'a': ptxas keeps 8 bytes per thread in local "
                                   "memory, which has no colour (--allow-spills); 1 more kernel "
                                   "of this module with local memory (--report says which "
                                   "and why)")));
}

TEST_F(ModuleCallsThatAllowSpills, more_registers_are_tried_before) {
  const CuModule module = loaded(std::string(test::module_head) +
                                 ".visible .entry limited(.param .u64 p)\n.maxntid 64\n"
                                 ".minnctapersm 8\n{\n.reg .b64 %spills;\nret;\n}\n");
  EXPECT_EQ(launch_line(function_of(module, "limited"), 1, 1, DevicePointer{0}), cu_success);
  EXPECT_THAT(told, IsEmpty());
}

}  // namespace
}  // namespace demarc::cuda
