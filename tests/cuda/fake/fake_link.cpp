// The driver's linker, which makes machine code of PTX.
#include "fake_link.hpp"

#include <elf.h>

#include <cstring>

#include "fake_told.hpp"

namespace demarc::fake {
namespace {

constexpr const char* ptx_section = ".demarc_ptx";
constexpr std::size_t instruction_bytes = 16;
constexpr std::size_t register_byte = 9;
constexpr char register_of_launch = 0x43;
constexpr char register_of_card = 0x03;

struct Section {
  std::string name;
  std::string content;
  std::uint64_t flags = 0;
};

// S2R R0, SR_VIRTUALSMID
std::string reading() {
  std::string instruction(instruction_bytes, '\0');
  instruction[0] = 0x19;
  instruction[1] = 0x79;
  instruction[register_byte] = register_of_launch;
  return instruction;
}

std::string elf_of(std::uint32_t sm, const std::vector<Section>& sections) {
  std::string names(1, '\0');
  std::string file(sizeof(Elf64_Ehdr), '\0');
  std::vector<Elf64_Shdr> headers(1);
  const auto add = [&](const Section& section, std::uint32_t type) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(names.size());
    header.sh_type = type;
    header.sh_flags = section.flags;
    header.sh_offset = file.size();
    names += section.name + '\0';
    const std::string& content = type == SHT_STRTAB ? names : section.content;
    header.sh_size = content.size();
    file += content;
    headers.push_back(header);
  };
  for (const Section& section : sections) add(section, SHT_PROGBITS);
  add({".shstrtab", {}}, SHT_STRTAB);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_ident[EI_OSABI] = 0x33;
  header.e_ident[EI_ABIVERSION] = 7;
  header.e_type = ET_EXEC;
  header.e_machine = EM_CUDA;
  header.e_version = EV_CURRENT;
  header.e_flags = sm;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shoff = file.size();
  header.e_shnum = static_cast<Elf64_Half>(headers.size());
  header.e_shstrndx = static_cast<Elf64_Half>(headers.size() - 1);
  std::memcpy(file.data(), &header, sizeof header);
  return file.append(reinterpret_cast<const char*>(headers.data()),
                     headers.size() * sizeof(Elf64_Shdr));
}

}  // namespace

std::string machine_code_of(const FakeConfig& config, const std::string& ptx) {
  std::string code;
  for (auto at = ptx.find("%smid"); at != std::string::npos; at = ptx.find("%smid", at + 1)) {
    if (config.linker == Linker::works) code += reading();
  }
  const auto sm =
      static_cast<std::uint32_t>(10 * config.capability_major + config.capability_minor);
  return elf_of(sm, {{".text.kernels", code, SHF_ALLOC | SHF_EXECINSTR}, {ptx_section, ptx}});
}

std::optional<FakeCode> code_in(const char* image) {
  if (std::memcmp(image, ELFMAG, SELFMAG) != 0) return std::nullopt;
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), image + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  const char* names = image + sections.at(header.e_shstrndx).sh_offset;
  FakeCode code;
  for (const Elf64_Shdr& section : sections) {
    const char* content = image + section.sh_offset;
    if (std::strcmp(names + section.sh_name, ptx_section) == 0) {
      code.ptx.assign(content, section.sh_size);
    }
    if ((section.sh_flags & SHF_EXECINSTR) == 0 || section.sh_size == 0) continue;
    code.reading.of_card = content[register_byte] == register_of_card;
  }
  if (code.ptx.empty()) return std::nullopt;
  code.reading.cut = code.ptx.find("%smid; bfe.u32") != std::string::npos;
  return code;
}

}  // namespace demarc::fake

using namespace demarc::fake;  // NOLINT: exported symbols are not in a namespace
using namespace demarc::cuda;  // NOLINT

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {
struct FakeLink {
  std::string ptx;
  std::string image;
};
FakeLink* link_of(CuLink link) {
  return reinterpret_cast<FakeLink*>(link);
}
}  // namespace

FAKE CuResult cuLinkCreate_v2(unsigned count, int* options, void** values, CuLink* link) {
  if (count != 0 || options != nullptr || values != nullptr) return error_invalid;
  return on_card([&](FakeGpu& gpu) {
    if (gpu.config.linker == Linker::refuses) return cu_error_not_supported;
    ++gpu.others_alive;
    *link = reinterpret_cast<CuLink>(new FakeLink);
    return cu_success;
  });
}
FAKE CuResult cuLinkAddData_v2(CuLink link, int type, void* data, std::size_t bytes, const char*,
                               unsigned count, int*, void**) {
  constexpr int ptx = 1;
  const auto* text = static_cast<const char*>(data);
  if (type != ptx || count != 0 || bytes == 0 || text[bytes - 1] != '\0') return error_invalid;
  return on_card([&](FakeGpu&) {
    link_of(link)->ptx += text;
    return cu_success;
  });
}
FAKE CuResult cuLinkComplete(CuLink link, void** image, std::size_t* bytes) {
  return on_card([&](FakeGpu& gpu) {
    if (link_of(link)->ptx.find(".version") == std::string::npos) return error_invalid_ptx;
    std::string& made = link_of(link)->image;
    made = machine_code_of(gpu.config, link_of(link)->ptx);
    *image = made.data();
    *bytes = made.size();
    return cu_success;
  });
}
FAKE CuResult cuLinkDestroy(CuLink link) {
  const auto lock = locked();
  --FakeGpu::get().others_alive;
  delete link_of(link);
  return cu_success;
}
