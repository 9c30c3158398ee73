#include "export/send_settings.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/printable_text.h"

namespace spanprof::sending {
namespace {

constexpr std::string_view kProfilesPath = "/v1development/profiles";
constexpr std::string_view kDefaultEndpoint = "http://localhost:4318";
constexpr std::size_t kMaxHeaders = 64;
constexpr std::uint64_t kMaxTimeoutMs = 3'600'000;

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> PercentDecode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = HexDigit(text[i + 1]);
    const int low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

bool SameName(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

bool HasHeader(const std::vector<HttpHeader>& headers, std::string_view name) {
  return std::any_of(headers.begin(), headers.end(),
                     [name](const HttpHeader& header) { return SameName(header.name, name); });
}

// Adds one `name=value` of the variable, or returns why not. The value is never in the text.
std::string AddVariableHeader(std::string_view entry, const std::vector<HttpHeader>& given,
                              std::vector<HttpHeader>& headers) {
  const std::size_t equals = entry.find('=');
  if (equals == std::string_view::npos) return "an entry has no '='";
  std::optional<std::string> name = PercentDecode(Trim(entry.substr(0, equals)));
  std::optional<std::string> value = PercentDecode(Trim(entry.substr(equals + 1)));
  if (!name || !value) return "an entry has a '%' without two hexadecimal digits";
  HttpHeader header{*std::move(name), *std::move(value)};
  if (const Result<void> check = CheckHeader(header); !check) return check.error().message;
  if (HasHeader(given, header.name)) return {};  // header= wins
  if (headers.size() >= kMaxHeaders) return "there are too many";
  headers.push_back(std::move(header));
  return {};
}

void AddVariableHeaders(std::string_view text, SendSettings& settings) {
  const std::vector<HttpHeader> given = settings.headers;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view entry = Trim(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (entry.empty()) continue;
    const std::string problem = AddVariableHeader(entry, given, settings.headers);
    if (problem.empty()) continue;
    settings.warnings.push_back("OTEL_EXPORTER_OTLP_HEADERS: " + problem + "; it was skipped");
    if (settings.warnings.size() > 8) return;
  }
}

// Shows of a URL what cannot be a secret.
std::string Shown(std::string_view url) {
  if (url.find('@') != std::string_view::npos) return "(not shown)";
  return Quoted(url.substr(0, url.find('?')));
}

Result<HttpUrl> ParsePlainUrl(std::string_view text, const std::string& source) {
  Result<HttpUrl> url = ParseHttpUrl(text);
  const std::string seen = source + "=" + Shown(text);
  if (!url) return Fail(url.error().code, seen + " " + url.error().message, url.error().hint);
  if (url->is_https) {
    return Fail(EPROTONOSUPPORT,
                seen + " needs TLS, which a profiler inside another's program does not bring along",
                "send to an OpenTelemetry Collector beside it (to=otlp+http://localhost:4318), or "
                "write file=profile.pb.gz and run: curl --data-binary @profile.pb.gz URL");
  }
  return url;
}

void AppendPath(HttpUrl& url, std::string_view path) {
  const std::size_t query = std::min(url.target.find('?'), url.target.size());
  std::string base = url.target.substr(0, query);
  while (base.ends_with('/')) base.pop_back();
  url.target = base.append(path) + url.target.substr(query);
}

bool HasPath(const HttpUrl& url) { return url.target.substr(0, url.target.find('?')) != "/"; }

Result<HttpUrl> EnvironmentUrl(const SendEnvironment& environment) {
  const std::string_view own = Trim(environment.profiles_endpoint);
  if (!own.empty()) return ParsePlainUrl(own, "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT");
  std::string_view base = Trim(environment.endpoint);
  if (base.empty()) base = kDefaultEndpoint;
  Result<HttpUrl> url = ParsePlainUrl(base, "OTEL_EXPORTER_OTLP_ENDPOINT");
  if (url) AppendPath(*url, kProfilesPath);
  return url;
}

// Whether the variables' headers are meant for `url`.
bool HeadersAreFor(const HttpUrl& url, const SendEnvironment& environment) {
  for (const std::string_view text :
       {Trim(environment.profiles_endpoint), Trim(environment.endpoint)}) {
    if (text.empty()) continue;
    const Result<HttpUrl> other = ParseHttpUrl(text);
    return other && !other->is_https && SameName(other->host, url.host) && other->port == url.port;
  }
  return true;
}

void ApplyEnvironment(const SendEnvironment& environment, SendSettings& settings) {
  const std::string_view own = Trim(environment.profiles_headers);
  const std::string_view headers = own.empty() ? Trim(environment.headers) : own;
  if (!headers.empty() && HeadersAreFor(settings.url, environment)) {
    AddVariableHeaders(headers, settings);
  } else if (!headers.empty()) {
    settings.warnings.emplace_back(
        "OTEL_EXPORTER_OTLP_HEADERS is not sent: OTEL_EXPORTER_OTLP_ENDPOINT beside it names "
        "another "
        "host than to=; give header= or to=otlp");
  }
  const std::string_view own_timeout = Trim(environment.profiles_timeout);
  const std::string_view timeout = own_timeout.empty() ? Trim(environment.timeout) : own_timeout;
  if (timeout.empty()) return;
  std::uint64_t milliseconds = 0;
  const char* const end = timeout.data() + timeout.size();
  const auto parsed = std::from_chars(timeout.data(), end, milliseconds);
  if (parsed.ec != std::errc() || parsed.ptr != end || milliseconds == 0 ||
      milliseconds > kMaxTimeoutMs) {
    settings.warnings.push_back(
        "OTEL_EXPORTER_OTLP_TIMEOUT: " + Quoted(timeout) +
        " is not a number of milliseconds from 1 to 3600000; it was skipped");
    return;
  }
  const std::chrono::milliseconds total(milliseconds);
  settings.timeouts = {
      .connect = std::min<std::chrono::nanoseconds>(settings.timeouts.connect, total),
      .send = total,
      .receive = total,
      .total = total};
}

}  // namespace

Result<std::optional<SendSettings>> MergeSendSettings(const Options& options,
                                                      const SendEnvironment& environment) {
  if (!options.to) return std::nullopt;
  SendSettings settings;
  settings.spool = options.spool;
  settings.headers = options.headers;
  for (const HttpHeader& header : options.headers) {
    if (const Result<void> check = CheckHeader(header); !check) {
      return tl::make_unexpected(check.error());
    }
  }
  std::string_view to = *options.to;
  const bool is_environment = to == "otlp";
  if (to.starts_with("pprof+")) {
    settings.format = OutputFormat::kPprof;
    to.remove_prefix(6);
  } else if (to.starts_with("otlp+")) {
    to.remove_prefix(5);
  }
  Result<HttpUrl> url = is_environment ? EnvironmentUrl(environment) : ParsePlainUrl(to, "to");
  if (!url) return tl::make_unexpected(url.error());
  settings.url = *std::move(url);
  if (settings.format == OutputFormat::kOtlp) {
    if (!is_environment && !HasPath(settings.url)) AppendPath(settings.url, kProfilesPath);
    ApplyEnvironment(environment, settings);
  }
  return settings;
}

Result<std::optional<SendSettings>> ReadSendSettings(const Options& options) {
  const auto read = [](const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
  };
  return MergeSendSettings(options,
                           {.endpoint = read("OTEL_EXPORTER_OTLP_ENDPOINT"),
                            .profiles_endpoint = read("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT"),
                            .headers = read("OTEL_EXPORTER_OTLP_HEADERS"),
                            .profiles_headers = read("OTEL_EXPORTER_OTLP_PROFILES_HEADERS"),
                            .timeout = read("OTEL_EXPORTER_OTLP_TIMEOUT"),
                            .profiles_timeout = read("OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT")});
}

}  // namespace spanprof::sending
