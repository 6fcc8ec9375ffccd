// What is found in the files of a program, and the verdict that follows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "program_doctor_fixture.hpp"

namespace demarc::cuda {
namespace {

namespace fs = std::filesystem;
using fatbin::test::kept_file;
using fatbin::test::made_elf;
using fatbin::test::made_fat_binary;
using fatbin::test::small_ptx;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST_F(ProgramDoctor, a_program_of_ptx_alone_can_be_isolated_by_arithmetic) {
  add("app", {ptx});
  for (const char* card : {"h200", "h100-sxm"}) {
    const ProgramFindings found = on(card);
    EXPECT_EQ(found.verdict, Verdict::isolated) << found.because;
    EXPECT_THAT(found.because, StartsWith("All of its kernels have PTX that Demarc rewrites"));
    EXPECT_TRUE(check_isolated(found));
    const FileCode& code = found.files.at(0);
    EXPECT_EQ(code.state, FileState::ok);
    EXPECT_EQ(code.images, 1U);
    EXPECT_EQ(code.ptx_kernels, 1U);
    EXPECT_EQ(code.machine_kernels + code.unfit_kernels + code.untried_kernels, 0U);
  }
}

TEST_F(ProgramDoctor, a_program_of_machine_code_alone_needs_a_card_with_windows) {
  add("app", {machine});
  const ProgramFindings without = on("h200");
  EXPECT_EQ(without.verdict, Verdict::cannot);
  EXPECT_THAT(without.because,
              AllOf(StartsWith("All of its code is machine code."), HasSubstr("256 bytes"),
                    HasSubstr("refused by name before it runs. Its SMs alone can be divided.")));
  EXPECT_EQ(command_to_type(without), "demarc exec --sms 66 -- ./app");
  EXPECT_EQ(without.files.at(0).state, FileState::refused);
  EXPECT_EQ(without.files.at(0).machine_kernels, 1U);
  const auto refused = check_isolated(without);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::check_failed);
  EXPECT_EQ(refused.error().message, "the program cannot be isolated on this card");
  const ProgramFindings with = on("h100-sxm");
  EXPECT_EQ(with.verdict, Verdict::isolated);
  EXPECT_THAT(with.because, AllOf(HasSubstr("runs in windows"), HasSubstr("colours that change")));
  EXPECT_EQ(with.files.at(0).state, FileState::ok);
}

TEST_F(ProgramDoctor, a_program_with_both_is_isolated_in_part_without_windows) {
  add("app", {ptx});
  add("libcudnn.so.9", {machine});
  const ProgramFindings found = on("h200");
  EXPECT_EQ(found.verdict, Verdict::in_part);
  EXPECT_THAT(found.because, StartsWith("Kernels with PTX run in the tenant's colours, but some"));
  EXPECT_THAT(found.because, EndsWith("is refused by name before it runs."));
  EXPECT_EQ(check_isolated(found).error().message, "the program can be isolated in part only");
  EXPECT_EQ(command_to_type(found), "demarc exec --part 1/2 --report -- ./app");
  EXPECT_EQ(file_of(found, "app").state, FileState::ok);
  EXPECT_EQ(file_of(found, "libcudnn.so.9").library, "cuDNN");
  EXPECT_THAT(found.files.at(0).file.path, HasSubstr("libcudnn")) << "what is refused stands first";
  EXPECT_EQ(on("h100-sxm").verdict, Verdict::isolated);
}

TEST_F(ProgramDoctor, cublas_is_replaced_where_machine_code_is_refused) {
  const std::string sentence =
      "In the place of cuBLAS, libdemarc_blas.so computes products and vectors of real numbers in "
      "the tenant's colours; what it lacks is refused by name.";
  add("app", {ptx});
  add("libcublas.so.12", {machine});
  add("libcublasLt.so.12", {machine});
  const ProgramFindings found = on("h200");
  EXPECT_EQ(found.verdict, Verdict::in_part);
  EXPECT_EQ(found.because, "Its kernels with PTX run in the tenant's colours. " + sentence);
  EXPECT_EQ(file_of(found, "libcublas.so.12").state, FileState::replaced);
  EXPECT_EQ(file_of(found, "libcublasLt.so.12").state, FileState::replaced);
  EXPECT_EQ(on("h100-sxm").verdict, Verdict::isolated);
  EXPECT_EQ(file_of(on("h100-sxm"), "libcublas.so.12").state, FileState::ok);
  add("libcudnn.so.9", {machine});
  EXPECT_EQ(on("h200").verdict, Verdict::in_part);
  EXPECT_THAT(on("h200").because, EndsWith("is refused by name before it runs. " + sentence));
  program.files.clear();
  add("libcublas.so.12", {machine});
  add("libcudnn.so.9", {machine});
  EXPECT_EQ(on("h200").verdict, Verdict::in_part) << "cuBLAS's part of it runs";
}

TEST_F(ProgramDoctor, kernels_whose_ptx_demarc_does_not_rewrite_are_refused_without_windows) {
  add("app", {unfit});
  const ProgramFindings found = on("h200");
  EXPECT_EQ(found.verdict, Verdict::cannot);
  EXPECT_EQ(found.files.at(0).state, FileState::refused);
  EXPECT_EQ(found.files.at(0).unfit_kernels, 1U);
  EXPECT_THAT(found.files.at(0).why_unfit,
              AllOf(HasSubstr("managed"), EndsWith(", in counted(int*)")));
  EXPECT_THAT(findings_to_text(found), HasSubstr("\n             unfit PTX: "));
  EXPECT_EQ(on("h100-sxm").verdict, Verdict::isolated) << "it runs as it is";
}

TEST_F(ProgramDoctor, code_for_other_cards_alone_does_not_count) {
  add("app", {machine});
  gpu::Device device = gpu::find_device("h200").value();
  device.compute_capability = {8, 0};
  const ProgramFindings found = look_at_program(program, tenant_card(device));
  EXPECT_EQ(found.files.at(0).state, FileState::no_code);
  EXPECT_EQ(found.files.at(0).other_images, 1U);
  EXPECT_EQ(found.files.at(0).images, 1U);
  EXPECT_EQ(found.verdict, Verdict::not_known);
  EXPECT_THAT(findings_to_text(found),
              HasSubstr("1 file has no device code for this card: 1 with code for other cards "
                        "alone\n"));
}

TEST_F(ProgramDoctor, on_a_card_without_colours_only_sms_can_be_divided) {
  add("app", {ptx});
  const ProgramFindings found = on("gtx1080");
  EXPECT_EQ(found.verdict, Verdict::cannot);
  EXPECT_THAT(found.because, StartsWith("The memory of this card cannot be divided, so only its "
                                        "SMs can: GTX 1080: "));
  EXPECT_EQ(command_to_type(found), "demarc exec --sms 10 -- ./app");
  EXPECT_EQ(command_to_type(on("h200")), "demarc exec --part 1/2 -- ./app");
}

TEST_F(ProgramDoctor, what_cannot_be_read_is_never_fine) {
  add("app", {ptx});
  const std::string broken = made_fat_binary({{.kind = 2, .sm = 90, .content = "no cubin"}});
  const std::vector<std::pair<std::string, std::string>> all = {
      {made_elf(EM_X86_64, {{".nv_fatbin", broken}}), "entry"},
      {made_elf(EM_X86_64, {{".nv_fatbin", "no fat binary"}}),
       ".nv_fatbin: image 0: no fat binary"},
      {made_elf(EM_X86_64, {{".nv_fatbin", made_fat_binary({{.kind = 16, .content = "?"}})}}),
       "1 of 1 images are of a kind that is not known"},
      {"no ELF file", ""},
      {made_elf(EM_X86_64, {{".nv_fatbin", made_fat_binary({{.content = std::string(small_ptx) +
                                                                        "no instruction\n"}})}}),
       "its PTX"}};
  for (const auto& [content, why] : all) {
    program.files.resize(1);
    add_bytes("liblast.so", content);
    for (const char* card : {"h200", "h100-sxm"}) {
      const ProgramFindings found = on(card);
      EXPECT_EQ(found.verdict, Verdict::not_known) << why;
      const FileCode& code = file_of(found, "liblast.so");
      EXPECT_EQ(code.state, FileState::not_checked);
      EXPECT_THAT(code.why, AllOf(HasSubstr(why), Not(StartsWith("/"))));
      EXPECT_THAT(findings_to_text(found), HasSubstr("\nnot checked  liblast.so: "));
    }
  }
  program.files.back().path = folder / "gone.so";
  EXPECT_EQ(on("h200").verdict, Verdict::not_known);
  EXPECT_EQ(file_of(on("h200"), "gone.so").state, FileState::not_checked);
}

TEST_F(ProgramDoctor, ptx_that_cannot_be_parsed_hides_nothing_else) {
  const std::string wrong = std::string(small_ptx) + "no instruction\n";
  add("app", {made_fat_binary({{.content = wrong}}), made_fat_binary({{.content = wrong}}), ptx});
  const ProgramFindings found = on("h200");
  EXPECT_EQ(found.files.at(0).state, FileState::not_checked);
  EXPECT_EQ(found.files.at(0).unknown_images, 2U);
  EXPECT_EQ(found.files.at(0).ptx_kernels, 1U);
  EXPECT_EQ(on("h100-sxm").verdict, Verdict::not_known) << "the driver may not take it either";
  program.files.clear();
  add("app", {made_fat_binary({{.content = wrong}}), machine});
  EXPECT_EQ(on("h200").files.at(0).state, FileState::refused);
  EXPECT_EQ(on("h200").verdict, Verdict::in_part);
}

TEST_F(ProgramDoctor, something_that_was_not_looked_at_leaves_the_rest_unknown) {
  add("app", {ptx});
  program.unchecked = {{"run.sh", "it is a script"}, {"run.sh", "again"}};
  const ProgramFindings found = on("h200");
  EXPECT_EQ(found.verdict, Verdict::not_known);
  EXPECT_EQ(check_isolated(found).error().message,
            "it is not known whether the program can be isolated");
  EXPECT_EQ(command_to_type(found), "demarc exec --part 1/2 --report -- ./app");
  EXPECT_THAT(found.because, StartsWith("Some of it could not be looked at"));
  EXPECT_EQ(found.program.unchecked.size(), 1U) << "each is told once";
  add("libm.so", {machine});
  EXPECT_EQ(on("h200").verdict, Verdict::in_part) << "so much is certain";
  program.files.erase(program.files.begin());
  EXPECT_EQ(on("h200").verdict, Verdict::in_part) << "and not that all is machine code";
}

TEST_F(ProgramDoctor, ptx_beyond_what_is_tried_is_not_checked) {
  const std::string text =
      std::string(small_ptx) + ".visible .entry a() { ret; } .entry b() { ret; }";
  add("app", {made_fat_binary({{.content = text}})});
  add("liblast.so", {made_fat_binary({{.content = text}})});
  const auto with_most = [&](std::uint64_t bytes) {
    return look_at_program(program, card_named("h200"), {}, bytes);
  };
  const ProgramFindings found = with_most(2 * text.size() - 1);
  EXPECT_EQ(file_of(found, "app").state, FileState::ok);
  EXPECT_EQ(file_of(found, "liblast.so").untried_kernels, 2U);
  EXPECT_EQ(file_of(found, "liblast.so").state, FileState::not_checked);
  EXPECT_EQ(found.verdict, Verdict::not_known);
  EXPECT_EQ(with_most(2 * text.size()).verdict, Verdict::isolated);
  program.files.pop_back();
  add("libmachine.so", {machine, made_fat_binary({{.content = text}})});
  EXPECT_EQ(file_of(with_most(text.size()), "libmachine.so").state, FileState::refused);
  program.files.erase(program.files.begin());
  EXPECT_EQ(with_most(1).verdict, Verdict::in_part) << "not all of it is known to be machine code";
  const ProgramFindings windows = look_at_program(program, card_named("h100-sxm"), {}, 1);
  EXPECT_EQ(windows.verdict, Verdict::isolated) << "it runs as it is, whatever it is";
}

TEST_F(ProgramDoctor, code_that_is_linked_while_the_program_runs_is_not_checked_without_windows) {
  add("app", {ptx, kept_file("lto.fatbin")});
  const ProgramFindings found = on("h200");
  EXPECT_EQ(found.files.at(0).link_images, 1U);
  EXPECT_EQ(found.files.at(0).state, FileState::not_checked);
  EXPECT_EQ(found.files.at(0).why, "1 of 2 images are linked while it runs");
  EXPECT_EQ(found.verdict, Verdict::not_known);
  EXPECT_EQ(on("h100-sxm").files.at(0).state, FileState::ok);
  EXPECT_THAT(on("h100-sxm").because, StartsWith("Machine code runs in windows"));
  program.files.clear();
  add("app", {machine, kept_file("lto.fatbin")});
  EXPECT_EQ(on("h200").files.at(0).state, FileState::refused);
  EXPECT_EQ(on("h200").verdict, Verdict::in_part) << "not all of it is known to be machine code";
}

TEST_F(ProgramDoctor, images_among_the_data_of_a_program_count) {
  add("app", {}, "data" + machine + "data" + ptx);
  const ProgramFindings found = on("h200");
  EXPECT_EQ(found.files.at(0).machine_kernels, 1U);
  EXPECT_EQ(found.files.at(0).ptx_kernels, 1U);
  EXPECT_EQ(found.verdict, Verdict::in_part);
}

TEST_F(ProgramDoctor, a_program_without_device_code_is_not_known_and_says_whether_it_uses_cuda) {
  add("app", {});
  EXPECT_EQ(on("h200").verdict, Verdict::not_known);
  EXPECT_THAT(on("h200").because, HasSubstr("none is linked with CUDA"));
  EXPECT_FALSE(on("h200").files.at(0).uses_cuda);
  add("liblast.so", {}, "dlopens libcuda.so.1");
  const ProgramFindings found = on("h200");
  EXPECT_THAT(found.because, StartsWith("It uses CUDA, but none of its files has device code"));
  EXPECT_TRUE(file_of(found, "liblast.so").uses_cuda);
  EXPECT_THAT(findings_to_text(found),
              HasSubstr("2 files have no device code for this card: 1 with calls of CUDA\n"));
}

TEST_F(ProgramDoctor, the_drivers_own_libraries_do_not_count_but_say_that_cuda_is_used) {
  add("app", {});
  add("libcuda.so.1", {machine});
  add("libnvidia-ptxjitcompiler.so.1", {machine});
  const ProgramFindings found = on("h200");
  EXPECT_EQ(found.files.size(), 1U);
  EXPECT_THAT(found.because, StartsWith("It uses CUDA"));
}

TEST_F(ProgramDoctor, device_code_in_files_of_its_own_counts) {
  add_bytes("kernel.cubin", kept_file("counted_90.cubin"), "one");
  add_bytes("kernel.ptx", std::string(small_ptx) + ".visible .entry k() { ret; }\n", "one");
  add_bytes("all.fatbin", ptx, "one");
  const ProgramFindings found = on("h200");
  EXPECT_EQ(file_of(found, "kernel.cubin").machine_kernels, 1U);
  EXPECT_EQ(file_of(found, "kernel.ptx").ptx_kernels, 1U);
  EXPECT_EQ(file_of(found, "all.fatbin").ptx_kernels, 1U);
}

TEST_F(ProgramDoctor, libraries_of_nvidias_are_known_by_name) {
  for (const auto& [file, name] :
       std::vector<std::pair<std::string, std::string>>{{"libcublasLt.so.12", "cuBLASLt"},
                                                        {"libcudnn_ops.so.9", "cuDNN"},
                                                        {"libcufft.so.11", "cuFFT"},
                                                        {"libcusparse.so.12", "cuSPARSE"},
                                                        {"libcusolver.so.11", "cuSOLVER"},
                                                        {"libnccl.so.2", "NCCL"},
                                                        {"libnccl-net.so", ""},
                                                        {"libmine.so", ""}}) {
    program.files.clear();
    add(file, {machine});
    EXPECT_EQ(on("h200").files.at(0).library, name) << file;
  }
}

// A library that needs this one, as compilers write it.
std::string needing(const std::string& needed) {
  std::string bytes = read_file(test::build_dir() / "libdemarc_machine_code.so").value();
  const std::string one = std::string("\0libstdc++.so.6", 15) + '\0';
  EXPECT_LE(needed.size() + 2, one.size());
  std::string other = '\0' + needed + '\0';
  other.resize(one.size());
  bytes.replace(bytes.find(one), one.size(), other);
  return bytes;
}

TEST_F(ProgramDoctor, a_library_that_needs_the_runtime_of_cuda_uses_cuda) {
  for (const char* needed : {"libcudart.so.1", "libcuda.so.1"}) {
    program.files.clear();
    add_bytes("one.so", needing(needed));
    EXPECT_TRUE(on("h200").files.at(0).uses_cuda) << needed;
  }
  program.files.clear();
  add_bytes("one.so", needing("libother.so"));
  EXPECT_FALSE(on("h200").files.at(0).uses_cuda);
}

TEST_F(ProgramDoctor, a_library_of_nvidias_that_is_needed_and_not_found_is_not_checked) {
  add("app", {ptx});
  add_bytes("one.so", needing("libnccl.so.2"), "one");
  const ProgramFindings found = on("h200");
  EXPECT_NE(found.verdict, Verdict::isolated);
  ASSERT_EQ(found.program.unchecked.size(), 1U);
  EXPECT_EQ(found.program.unchecked.at(0).what, "libnccl.so.2");
  EXPECT_EQ(found.program.unchecked.at(0).why, "one.so needs it");
  add("libnccl.so.2", {machine}, "code", "nvidia");
  EXPECT_THAT(on("h200").program.unchecked, IsEmpty()) << "it is among the files";
}

TEST_F(ProgramDoctor, a_library_of_nvidias_that_is_needed_is_looked_for_by_the_loader) {
  add("app", {ptx});
  add_bytes("one.so", needing("libnccl.so.2"), "one");
  add("libnccl.so.2", {machine});
  program.files.pop_back();
  ASSERT_TRUE(write_file(folder / "ld.so", "#!/bin/sh\necho '\t/x => " +
                                               (folder / "libnccl.so.2").string() + " (0)'\n"));
  fs::permissions(folder / "ld.so", fs::perms::owner_all);
  program.loader = folder / "ld.so";
  const ProgramFindings found = on("h200");
  EXPECT_EQ(file_of(found, "libnccl.so.2").machine_kernels, 1U);
  EXPECT_EQ(found.verdict, Verdict::in_part);
  EXPECT_THAT(found.program.unchecked, IsEmpty());
}

TEST_F(ProgramDoctor, what_compiles_while_it_runs_has_a_row_and_counts) {
  add("app", {});
  program.packages = {"cupy"};
  ProgramFindings found = on("h200");
  ASSERT_EQ(found.compilers.size(), 1U);
  EXPECT_TRUE(found.compilers.at(0).gives_ptx);
  EXPECT_EQ(found.verdict, Verdict::isolated);
  EXPECT_THAT(findings_to_text(found), HasSubstr("\nok           cupy: compiles kernels"));
  program.packages = {"torch", "triton"};
  found = on("h200");
  ASSERT_EQ(found.compilers.size(), 1U) << "a torch without CUDA is none";
  EXPECT_EQ(found.compilers.at(0).name, "triton");
  EXPECT_EQ(found.verdict, Verdict::cannot);
  add("libtorch_cuda.so", {ptx}, "code", "torch");
  found = on("h200");
  EXPECT_EQ(found.compilers.size(), 2U);
  EXPECT_EQ(found.verdict, Verdict::in_part);
  EXPECT_THAT(findings_to_text(found), HasSubstr("\nrefused      torch: operators are machine"));
  EXPECT_THAT(findings_to_text(on("h100-sxm")), HasSubstr("\nok           torch: operators"));
}

TEST_F(ProgramDoctor, each_compiler_is_known_for_what_it_gives) {
  add("xla_cuda_plugin.so", {}, "code", "jax_plugins");
  for (const auto& [package, gives_ptx] :
       std::vector<std::pair<std::string, bool>>{{"jax", false}, {"numba", true}, {"cupy", true}}) {
    program.packages = {package};
    const ProgramFindings found = on("h200");
    ASSERT_EQ(found.compilers.size(), 1U) << package;
    EXPECT_EQ(found.compilers.at(0).gives_ptx, gives_ptx) << package;
    EXPECT_EQ(found.verdict, gives_ptx ? Verdict::isolated : Verdict::cannot) << package;
  }
  program.packages = {"numpy"};
  EXPECT_THAT(on("h200").compilers, IsEmpty());
}

TEST_F(ProgramDoctor, progress_names_each_file_and_ends) {
  add("app", {});
  add("liblast.so", {});
  std::vector<std::string> told;
  double last = 0;
  const Progress progress = [&](double share, std::string_view what) {
    told.emplace_back(what);
    last = share;
  };
  EXPECT_EQ(look_at_program(program, card_named("h200"), progress).files.size(), 2U);
  EXPECT_THAT(told, ElementsAre("app", "liblast.so", ""));
  EXPECT_EQ(last, 1);
}

TEST_F(ProgramDoctor, compilers_that_a_process_has_loaded_are_known_by_their_libraries) {
  add("libtriton.so", {});
  add("libnvrtc.so.12", {});
  add("libtorch_cuda.so", {}, "code", "torch");
  const ProgramFindings found = on("h200");
  ASSERT_EQ(found.compilers.size(), 2U) << "what a package brings may stay unused";
  EXPECT_EQ(found.compilers.at(0).name, "libtriton");
  EXPECT_FALSE(found.compilers.at(0).gives_ptx);
  EXPECT_EQ(found.compilers.at(1).name, "libnvrtc");
  EXPECT_TRUE(found.compilers.at(1).gives_ptx);
}

TEST_F(ProgramDoctor, files_stand_in_the_order_in_which_they_matter) {
  add("a_none", {});
  add("b_ptx", {ptx});
  add("c_broken", {"no fat binary"});
  add("d_machine", {machine});
  add("e_more", {unfit, machine});
  add("f_ptx", {ptx, ptx});
  add("g_none", {});
  add("h_none", {});
  std::vector<std::string> names;
  for (const FileCode& code : on("h200").files)
    names.push_back(fs::path(code.file.path).filename());
  EXPECT_THAT(names, ElementsAre("e_more", "d_machine", "c_broken", "f_ptx", "b_ptx", "a_none",
                                 "g_none", "h_none"));
}

}  // namespace
}  // namespace demarc::cuda
