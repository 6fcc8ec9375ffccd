// Reads figures from files, and writes them as JSON and as text.
#include <algorithm>

#include "calibrate/figure_rows.hpp"
#include "json_parts.hpp"

namespace demarc::study {
namespace {

constexpr std::string_view figures_schema = "demarc.calibrate.figures/1";

Result<Figure> figure_from_json(JsonObject object) {
  Figure figure;
  DEMARC_TRY(figure.name, object.string("figure"));
  auto row = find_figure(figure.name);
  if (!row) return invalid_input("{}.figure: {}", object.where(), row.error().message);
  DEMARC_TRY(const std::string unit, object.string("unit"));
  if (unit != (*row)->unit) {
    return invalid_input("{}.unit: '{}' has the unit {}, not '{}'", object.where(), figure.name,
                         (*row)->unit, unit);
  }
  DEMARC_TRY(figure.value, object.number("value"));
  if (!(figure.value > 0)) {
    return invalid_input("{}.value: {} must be above 0", object.where(), figure.value);
  }
  DEMARC_TRY(figure.spread, object.number_or("spread", 0));
  if (figure.spread < 0) {
    return invalid_input("{}.spread: {} must be 0 or more", object.where(), figure.spread);
  }
  if (object.has("parameters")) {
    DEMARC_TRY(JsonObject parameters, object.object("parameters"));
    DEMARC_TRY(const gpu::Device any, gpu::find_device("gtx1080"));
    for (const auto& [name, usual] : (*row)->sizes(any)) {
      DEMARC_TRY(figure.parameters[name], parameters.integer(name, 1, std::int64_t{1} << 32U));
    }
    DEMARC_CHECK(parameters.finish());
  }
  DEMARC_CHECK(object.finish());
  return figure;
}

}  // namespace

std::string figures_json(const FigureSet& set, const std::string& command) {
  Json json{{"schema", figures_schema}, {"date", set.date}};
  if (!set.source.empty()) json["source"] = set.source;
  json["context"] = context_json(set.device, command);
  Json list = Json::array();
  for (const Figure& figure : set.figures) {
    const FigureRow& row = **find_figure(figure.name);
    Json one{{"figure", figure.name},
             {"value", figure.value},
             {"unit", row.unit},
             {"spread", figure.spread}};
    for (const auto& [name, value] : figure.parameters) one["parameters"][name] = value;
    list.push_back(std::move(one));
  }
  json["figures"] = std::move(list);
  return json_text(json, 2) + "\n";
}

Result<FigureSet> parse_figures(std::string_view text, std::string_view source) {
  DEMARC_TRY(const Json json, parse_json(text, source));
  DEMARC_TRY(JsonObject object, JsonObject::of(json, std::string(source)));
  DEMARC_TRY(const std::string found, object.string("schema"));
  if (found != figures_schema) {
    return invalid_input("{}.schema: '{}' is not '{}'", object.where(), found, figures_schema);
  }
  FigureSet set;
  DEMARC_TRY(set.date, object.string("date"));
  DEMARC_TRY(set.source, object.string_or("source", ""));
  DEMARC_TRY(JsonObject context, object.object("context"));
  DEMARC_TRY(set.device.name, context.string("device_name"));
  DEMARC_TRY(set.device.device, context.string_or("device", ""));
  DEMARC_TRY(set.device.driver, context.string_or("driver", ""));
  DEMARC_TRY(set.device.measured, context.boolean_or("measured", true));
  DEMARC_TRY(const std::int64_t sms, context.integer_or("sms", 0, 65535, 0));
  set.device.sms = static_cast<std::uint32_t>(sms);
  for (const char* const said : {"program", "revision", "command"}) {
    DEMARC_CHECK(context.string_or(said, ""));
  }
  for (const char* words : {"notes", "model"}) {
    if (context.has(words)) DEMARC_CHECK(context.array(words));
  }
  if (context.has("settings")) DEMARC_CHECK(context.any("settings"));
  DEMARC_CHECK(context.finish());
  DEMARC_TRY(const Json* const list, object.array("figures"));
  for (std::size_t i = 0; i < list->size(); ++i) {
    DEMARC_TRY(JsonObject one,
               JsonObject::of((*list)[i], fmt::format("{}.figures[{}]", object.where(), i)));
    DEMARC_TRY(Figure figure, figure_from_json(std::move(one)));
    const auto& before = set.figures;
    if (std::any_of(before.begin(), before.end(),
                    [&](const Figure& other) { return other.name == figure.name; })) {
      return invalid_input("{}.figures[{}].figure: '{}' appears twice", object.where(), i,
                           figure.name);
    }
    set.figures.push_back(std::move(figure));
  }
  DEMARC_CHECK(object.finish());
  if (set.figures.empty())
    return invalid_input("{}.figures: at least one figure is needed", object.where());
  return set;
}

std::string figures_text(const FigureSet& set) {
  std::string text =
      fmt::format("{}: {} figures of kernels alone on it\n", set.device.name, set.figures.size());
  for (const Figure& figure : set.figures) {
    const FigureRow& row = **find_figure(figure.name);
    text += fmt::format("  {:<20} {:>10.5g} {:<5}{}  {}\n", figure.name, figure.value, row.unit,
                        figure.spread > 0 ? fmt::format(" +-{:.1f} %", 100 * figure.spread) : "",
                        row.meaning);
  }
  return text;
}

}  // namespace demarc::study
