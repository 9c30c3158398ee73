#include "cli/grouping_option.h"

#include <string>
#include <utility>

#include "base/result.h"

namespace spanprof::cli {

void AddGroupingOption(CLI::App& command, std::vector<Grouping>& by) {
  std::string words;
  for (const std::string& word : GroupingWords()) words += word + ", ";
  command
      .add_option_function<std::string>(
          "--by",
          [&by](const std::string& text) {
            Result<std::vector<Grouping>> parsed = ParseGroupings(text);
            if (!parsed) {
              throw CLI::ValidationError("--by",
                                         parsed.error().message + "; " + parsed.error().hint);
            }
            by = *std::move(parsed);
          },
          "What to group by: " + words +
              "tag:NAME; several, such as tag:tenant,function, are nested. Default: "
              "endpoint,function, or function where there are no endpoints")
      ->type_name("WHAT");
}

}  // namespace spanprof::cli
