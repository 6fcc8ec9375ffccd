// Makes probe kernels read the register that names the SM.
#include "named_sms.hpp"

#include "demarc/base/text.hpp"
#include "demarc/fatbin/special_registers.hpp"

namespace demarc::cuda {
namespace {

constexpr std::string_view read_prefix = "mov.u32 ";
constexpr std::string_view read_suffix = ", %smid;";
constexpr std::string_view sm_register = "%smid";

}  // namespace

Result<std::string> cut_readings(std::string_view ptx, std::string_view source) {
  std::string text;
  std::size_t done = 0;
  for (auto at = ptx.find(sm_register); at != std::string_view::npos;
       at = ptx.find(sm_register, at + 1)) {
    const auto line = ptx.rfind('\n', at) + 1;  // npos + 1 is 0
    const auto begin = ptx.find(read_prefix, line);
    const auto end = at - 2 + read_suffix.size();
    if (begin >= at || end > ptx.size() || ptx.substr(at - 2, read_suffix.size()) != read_suffix) {
      return invalid_input("{}: '{}' reads %smid otherwise than by mov.u32", source,
                           ptx.substr(line, ptx.find('\n', at) - line));
    }
    const auto target = ptx.substr(begin + read_prefix.size(), at - 2 - begin - read_prefix.size());
    text += ptx.substr(done, end - done);
    append(text, " bfe.u32 {}, {}, {}, {};", target, target, sm_number_bit, sm_number_bits);
    done = end;
  }
  return text.append(ptx.substr(done));
}

Result<std::string> code_that_names_sms(const GpuPointer& gpu, std::string_view ptx,
                                        const std::string& source) {
  DEMARC_TRY(const std::string cut, cut_readings(ptx, source));
  DEMARC_TRY(std::string code, assemble(gpu, cut, source));
  DEMARC_TRY(const std::size_t replaced,
             fatbin::replace_special_register(code, fatbin::SpecialRegister::launch_sm,
                                              fatbin::SpecialRegister::virtual_id, source));
  if (replaced == 0) {
    return check_failed("{}: its machine code does not read %smid in a way that is known here",
                        source);
  }
  return code;
}

}  // namespace demarc::cuda
